// Numbers as they are written, and how strong a tint they are given.

// A number as a fraction, if it is one with a denominator up to 1000 and is short to write.
export const fraction = (value) => {
  for (let bottom = 1; bottom <= 1000; bottom++) {
    const top = Math.round(value * bottom);
    if (Math.abs(value - top / bottom) <= 1e-13 * Math.max(1, Math.abs(value))) {
      const text = bottom > 1 ? `${top}/${bottom}` : `${top}`;
      return text.length < 9 && text;
    }
  }
};

// With a sign of minus as it is printed.
export const withMinus = (text) => `${text}`.replace("-", "−");
// A number with four decimals, and no 0 below 0.
export const fourPlaces = (n) => withMinus((Math.abs(n) < 5e-5 ? 0 : n).toFixed(4));
const decimals = (value) => (Math.abs(value) < 1e5 ? value.toFixed(4) : value.toExponential(3));

// A number as a cell shows it: a fraction, or else four decimals.
export const numText = (value) => withMinus(fraction(value) || decimals(value));

// How strong a cell is drawn, in percent: a weight as it is, any other number by its size, so that
// no number is beyond the scale and one scale serves all arrays. Half a percent goes down, also
// where its last digit is rounded up.
export const strength = (name, value) =>
  Math.round(100 * (name == "weights" ? value : 1 - 2 ** (-1.5 * Math.abs(value))) - 1e-9);
