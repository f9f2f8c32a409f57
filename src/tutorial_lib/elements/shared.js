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
