// Tell the user, by a notification of the browser, when a run has ended while another window is in front. The browser
// shows the button only if it has not been asked for notifications yet. `data` is sent again and again while runs run.
let project = "";
let running = {}; // id -> title, as of the last call, on this or an earlier page

const tell = (title) => document.hidden && new Notification("Winnow", { body: `${title} has ended.` });

export default function ({ data, parentElement }) {
  if (!("Notification" in window)) return;
  if (data.project === project && Notification.permission === "granted") {
    Object.entries(running).forEach(([id, title]) => id in data.running || tell(title));
  }
  [project, running] = [data.project, data.running];

  parentElement.querySelector("button")?.remove();
  if (Notification.permission !== "default" || !Object.keys(running).length) return;
  const button = document.createElement("button");
  button.textContent = "Tell me when it ends";
  button.onclick = async () => {
    await Notification.requestPermission();
    button.remove();
  };
  parentElement.append(button);
}
