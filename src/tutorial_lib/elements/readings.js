// Numbers as readers write them.

const NUMBER = String.raw`((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)`;
const WRITTEN = RegExp(String.raw`^([-+]?)(?:(\d+)\+)?${NUMBER}(?:/${NUMBER})?(%?)$`, "i");

// Plain signs for what keyboards and pages offer. "1½" and "1 1/2" are sums; "10²" is not 102.
const plain = (text) =>
  text
    .replace(/[²³¹⁰-⁹]/g, "^")
    .replace(/[¼-¾⅐-⅞]/g, " $&")
    .normalize("NFKC")
    .replace(/[⁄∕÷]/g, "/")
    .replace(/(\d)\s+(?=\d\d?\s*\/)/g, "$1+")
    .replace(/\s/g, "")
    .replace(/[−–]/g, "-");

// The numbers that a text may mean: "4/7", "80%", "1e-1", "0,25"; "3,072" has two readings.
export const readings = (text) =>
  [plain(text).replace(/,/g, "."), plain(text).replace(/,(?=\d{3}\b)/g, "")]
    .map((number) => {
      const [, sign, whole = 0, top, bottom = 1, percent] = WRITTEN.exec(number) || [];
      return (sign == "-" ? -1 : 1) * (percent ? 0.01 : 1) * (Number(whole) + top / bottom);
    })
    .filter(isFinite);
