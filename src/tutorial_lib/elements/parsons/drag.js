// Lines are dragged by their handles, by mouse and by touch; beside these a finger still scrolls.

import { all } from "../shared.js";

const REACH = 32; // pixels around a list that still belong to it
const EDGE = 48; // pixels from the edge of the window where the page follows

const beyond = (at, low, high) => Math.max(low - at, at - high, 0);

// Where a line would fall: a list, and the line that it would stand before, if any.
const placeAt = (lists, node, { clientX, clientY }) => {
  const near = lists.map((list) => {
    const { left, right, top, bottom } = list.getBoundingClientRect();
    return Math.max(beyond(clientX, left, right), beyond(clientY, top, bottom));
  });
  const least = Math.min(...near);
  if (least > REACH) return;
  const list = lists[near.indexOf(least)];
  const above = (line) => {
    const { top, height } = line.getBoundingClientRect();
    return clientY < top + height / 2;
  };
  return { list, before: all(list, "li").find((line) => line != node && above(line)) };
};

// A bar between the lines shows where the line would fall.
const showPlace = (bar, { list, before } = {}) => {
  bar.style.display = list ? "block" : "none";
  if (!list) return;
  const last = list.lastElementChild;
  const end = last ? last.offsetTop + last.offsetHeight : list.offsetTop;
  const top = before ? before.offsetTop - 4 : end;
  const sizes = { top, left: list.offsetLeft, width: list.offsetWidth };
  Object.entries(sizes).forEach(([name, size]) => (bar.style[name] = `${size}px`));
};

// The handle of a line; `moved` follows when the line stands elsewhere than before.
export const handle = ({ element, pool, program, bar }, node, moved) => {
  const grip = document.createElement("span");
  grip.className = "tl-grip";
  grip.textContent = "⠿";
  grip.ariaHidden = true; // the buttons do the same by keys
  let place;
  const stop = () => {
    place = undefined;
    showPlace(bar);
    element.toggleAttribute("data-dragging", false);
    node.toggleAttribute("data-dragged", false);
  };
  grip.onpointerdown = (event) => {
    if (event.button) return;
    event.preventDefault(); // or the mouse would select text
    grip.setPointerCapture(event.pointerId);
    element.toggleAttribute("data-dragging", true);
    node.toggleAttribute("data-dragged", true);
  };
  grip.onpointermove = (event) => {
    if (!grip.hasPointerCapture(event.pointerId)) return;
    const { clientY } = event;
    const by = Math.sign(beyond(clientY, EDGE, innerHeight - EDGE)) * (clientY < EDGE ? -12 : 12);
    scrollBy({ top: by, behavior: "instant" });
    place = placeAt([pool, program], node, event);
    showPlace(bar, place);
  };
  grip.onpointerup = () => {
    const { list, before = null } = place || {};
    stop();
    const same = list == node.parentNode && before == node.nextElementSibling;
    if (!list || same) return;
    list.insertBefore(node, before);
    moved();
  };
  grip.onpointercancel = stop;
  return grip;
};
