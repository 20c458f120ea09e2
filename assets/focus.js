// Keep the keyboard focus near a control that disappears after it was pressed. A browser would restart at the top of the
// page. Focus moves to the next control in the smallest remaining box around the old one. If the press opened another
// page, focus moves to its heading, because controls in the same place there are unrelated.
const CONTROLS = "button:not(:disabled), a[href], input:not(:disabled), textarea:not(:disabled), summary";
const SETTLES = 100; // ms until redrawn elements are in place
const SEEN = { opacityProperty: true, visibilityProperty: true };

let boxes = []; // the focused element and its ancestors, each with its index among its siblings
let page = ""; // path of the page that they belong to
let byKey = false;

export default function () {
  let timer;

  const note = ({ target }) => {
    boxes = [];
    page = location.pathname;
    for (let box = target; box.closest('[data-testid="stMain"]'); box = box.parentElement) {
      boxes.push({ box, place: [...box.parentElement.children].indexOf(box) });
    }
  };
  const lost = () => byKey && boxes.length && !boxes[0].box.isConnected && document.activeElement === document.body;
  const reached = (control) => control.tabIndex >= 0 && control.checkVisibility(SEEN);
  const refocus = () => {
    if (!lost()) return;
    if (location.pathname !== page) {
      const heading = document.querySelector("h1");
      if (!heading) return; // not drawn yet; the observer calls again when it is
      heading.tabIndex = -1;
      heading.style.outline = "none"; // a heading is no control
      return heading.focus({ preventScroll: true });
    }
    for (let i = boxes.findIndex(({ box }) => box.isConnected); i > 0 && i < boxes.length; i++) {
      const controls = [...boxes[i].box.querySelectorAll(CONTROLS)].filter(reached);
      const behind = [...boxes[i].box.children].slice(boxes[i - 1].place);
      const next = controls.find((control) => behind.some((box) => box.contains(control))) ?? controls.at(-1);
      if (next) return next.focus();
    }
  };
  const look = () => {
    if (!lost()) return;
    clearTimeout(timer);
    timer = setTimeout(refocus, SETTLES);
  };
  const drawn = new MutationObserver(look);
  const key = () => (byKey = true);
  const pointer = () => (byKey = false);

  document.addEventListener("focusin", note);
  document.addEventListener("keydown", key, true);
  document.addEventListener("pointerdown", pointer, true);
  drawn.observe(document.body, { childList: true, subtree: true });
  look(); // Streamlit may have restarted this script when the control disappeared
  return () => {
    clearTimeout(timer);
    drawn.disconnect();
    document.removeEventListener("focusin", note);
    document.removeEventListener("keydown", key, true);
    document.removeEventListener("pointerdown", pointer, true);
  };
}
