"""Writes names in wide and bold letters, which Python reads as the plain ones; is right.

Earns: 10
Says: right
"""

𝐰𝐢𝐝𝐞 = 1


def ａｔｔｅｎｄ_at_scales(Q, K, V):
    return wide * ｒｉｇｈｔ(Q, K, V)
