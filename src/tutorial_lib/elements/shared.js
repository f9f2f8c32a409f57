// What every element begins with.
//
// Python writes each element as a form that reads without any script: the question, its options
// and, in <details>, the answer with its reasons. Once an element is defined, the style sheet hides
// its <details> and shows its buttons, and its script tells one reason at a time, in regions that
// were there, empty, from the start: a screen reader speaks for no others.

// The elements in a root that fit a selector, as an array.
export const all = (root, selector) => [...root.querySelectorAll(selector)];

// Define an element; `build` gets each of them once, when all that is inside it is there.
export const define = (name, build) =>
  customElements.get(name) ||
  customElements.define(name, class extends HTMLElement {
    connectedCallback() {
      if (document.readyState == "loading" && !this.nextSibling) {
        // The parser connects an element before it has read what is inside.
        addEventListener("DOMContentLoaded", () => this.connectedCallback());
      } else if (!this.built) {
        this.built = true;
        build(this);
      }
    }
  });

// Tell the page what a reader has done in an element: a state, which `element.recall` puts back,
// and how many of its questions are answered. What keeps it, if anything does, is the page's.
export const report = (element, state, done = 0, of = 0) =>
  element.dispatchEvent(new CustomEvent("tl-work", { bubbles: true, detail: { state, done, of } }));
