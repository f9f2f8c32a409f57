"""What the page of model cards says of all its cards."""

from tutorial_lib.records import facts


def _cards():
    return facts("models")["models"] + facts("models")["further"]


def cards_made_from(kind):
    """Return the cards whose numbers the reader takes from a configuration of a kind."""
    return [card for card in _cards() if "config" in card and card["source_kind"].startswith(kind)]


def cards_since(year):
    """Return the cards of a year and later."""
    return [card for card in _cards() if card["year"] >= year]


def cards_with(variant):
    """Return the cards of the models that have a variant."""
    return [card for card in _cards() if variant in card.get("variants", ())]


def only_llama_2_7b_changes_nothing_in_the_cache():
    """Of 2023 and later, only this model has as many KV heads as heads and full layers alone."""
    full = [card for card in cards_since(2023) if set(card.get("pattern", ())) == {"full"}]
    names = [card["name"] for card in full if card["heads"] == card["kv_heads"]]
    return names == ["Llama 2 7B"]


def cards_of_2025_that_rotate_only_a_part():
    """So many of them rotate less than a whole key in their full layers."""
    parts = [
        card
        for card in cards_since(2025)
        if card["positions"].get("rotated", 0) < card.get("full", card)["d_k"]
    ]
    return len(parts)


def only_mamba_2_has_a_gate_before_2025():
    """The only older model with a gate is Mamba-2, of 2024."""
    older = [(card["name"], card["year"]) for card in cards_with("Gate") if card["year"] < 2025]
    return older == [("Mamba-2 2.7B", 2024)]


def longest_text_of_deepseek_v3():
    """The stretch of its rotation gives this many tokens."""
    [positions] = [card["positions"] for card in _cards() if card["name"] == "DeepSeek-V3"]
    return positions["stretched"] * positions["max_positions"]


def pools_of_deepseek_v4():
    """Return how many tokens a chosen pool gathers, and the tokens between two pools."""
    [chosen] = [card["chosen"] for card in _cards() if "pool" in card.get("chosen", ())]
    return chosen["gathers"], chosen["pool"]
