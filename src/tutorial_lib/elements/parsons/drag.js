// Lines are dragged by their handles, by mouse and by touch; beside these a finger still scrolls.

import { all } from "../shared.js";

const REACH = 32; // pixels around a list that still belong to it
const EDGE = 48; // pixels from the edge of the window where the page follows

const beyond = (at, low, high) => Math.max(low - at, at - high, 0);

// Put a bar where a line would fall, if that is near a list.
const showPlace = (bar, lists, { clientX, clientY }) => {
  const near = lists.map((list) => {
    const { left, right, top, bottom } = list.getBoundingClientRect();
    return Math.max(beyond(clientX, left, right), beyond(clientY, top, bottom));
  });
  const least = Math.min(...near);
  if (least > REACH) return bar.remove();
  const list = lists[near.indexOf(least)];
  const below = all(list, "li:not([data-dragged])").find((line) => {
    const { top, height } = line.getBoundingClientRect();
    return clientY < top + height / 2;
  });
  list.insertBefore(bar, below ?? null);
};

// Let the handles of lines drag them among lists; `moved` follows when one stands elsewhere.
export const drag = (element, lists, moved) => {
  const bar = document.createElement("div");
  bar.className = "tl-drop";
  let held; // a handle
  const hold = (grip) => {
    held?.parentNode.removeAttribute("data-dragged");
    grip?.parentNode.setAttribute("data-dragged", "");
    element.toggleAttribute("data-dragging", Boolean(grip));
    bar.remove();
    held = grip;
  };
  element.onpointerdown = (event) => {
    if (event.button || !event.target.matches(".tl-grip")) return;
    event.preventDefault(); // or the mouse would select text
    event.target.setPointerCapture(event.pointerId);
    hold(event.target);
  };
  element.onpointermove = (event) => {
    if (!held?.hasPointerCapture(event.pointerId)) return;
    const { clientY } = event;
    const by = Math.sign(beyond(clientY, EDGE, innerHeight - EDGE)) * (clientY < EDGE ? -12 : 12);
    scrollBy({ top: by, behavior: "instant" });
    showPlace(bar, lists, event);
  };
  element.onpointerup = () => {
    const node = held?.parentNode;
    const moves = bar.isConnected && bar.previousElementSibling != node;
    if (moves) bar.replaceWith(node);
    hold();
    if (moves) moved(node);
  };
  element.onpointercancel = () => hold();
};
