// What a question asks, without the mark before it, "Prediction 1. ": its number may change.
export const asked = (box) =>
  box.querySelector("legend, label").textContent.replace(/^.*?\. /, "");
