// Drag over a node of an exhibit: `drag` gets each event, if `may` allows it where it begins. A
// finger may have begun to scroll, so it acts when it moves or lifts; what became a scroll is taken
// back. The style sheet lets a node that has the focus be dragged in all directions.
export const onDrag = (exhibit, node, drag, may = () => true) => {
  let held, before;
  node.onpointerdown = (event) => {
    held = !event.button && may() && event.pointerType;
    if (!held) return;
    before = exhibit.query();
    node.setPointerCapture(event.pointerId);
    if (held != "touch") drag(event);
  };
  node.onpointermove = (event) => node.hasPointerCapture(event.pointerId) && drag(event);
  node.onclick = (event) => held == "touch" && drag(event);
  node.onpointercancel = () => {
    if (exhibit.query() == before) return;
    exhibit.applyQuery(new URLSearchParams(before));
    exhibit.changed(exhibit.told());
  };
};
