// Who presses a control by key keeps the place where that control vanishes: a browser would begin at the page's top
// again. Focus goes to the next control behind it, in the smallest box around it that is still there and has one; on
// another page that the press led to, to the heading: a control in its place there has nothing to do with it.
const CONTROLS = "button:not(:disabled), a[href], input:not(:disabled), textarea:not(:disabled), summary";
const SETTLES = 100; // ms in which what was drawn anew stands there
const SEEN = { opacityProperty: true, visibilityProperty: true };

let boxes = []; // what has focus and what it lies in, outwards, each with its place among its siblings
let page = ""; // whose they are
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
  const mend = () => {
    if (!lost()) return;
    if (location.pathname !== page) {
      const heading = document.querySelector("h1");
      if (!heading) return; // not drawn yet: when it is, this is asked again
      heading.tabIndex = -1;
      heading.style.outline = "none"; // nothing that could be pressed
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
    timer = setTimeout(mend, SETTLES);
  };
  const drawn = new MutationObserver(look);
  const key = () => (byKey = true);
  const pointer = () => (byKey = false);

  document.addEventListener("focusin", note);
  document.addEventListener("keydown", key, true);
  document.addEventListener("pointerdown", pointer, true);
  drawn.observe(document.body, { childList: true, subtree: true });
  look(); // Streamlit may have begun this anew just when it went
  return () => {
    clearTimeout(timer);
    drawn.disconnect();
    document.removeEventListener("focusin", note);
    document.removeEventListener("keydown", key, true);
    document.removeEventListener("pointerdown", pointer, true);
  };
}
