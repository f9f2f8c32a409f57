// Numbers as readers write them.

// The numbers that a text may mean: "4/7", "0.25", "0,25"; "3,072" has two readings.
export const readings = (text) => {
  const plain = text.normalize("NFKC").replace(/\s/g, "").replace("−", "-").replace("⁄", "/");
  return [plain.replace(",", "."), plain.replace(/,(?=\d{3}\b)/g, "")]
    .map((number) => {
      const [, top, bottom = 1] = /^([-+]?[\d.]+)(?:\/([\d.]+))?$/.exec(number) || [];
      return top / bottom;
    })
    .filter(isFinite);
};
