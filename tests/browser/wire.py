"""Count the messages between a page and its server with a script in the page: `window.wire`."""

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

RERUN = BackMsg.DESCRIPTOR.fields_by_name["rerun_script"].number
BEGUN = ForwardMsg.DESCRIPTOR.fields_by_name["new_session"].number
ENDED = ForwardMsg.DESCRIPTOR.fields_by_name["script_finished"].number
GOES_ON = ForwardMsg.FINISHED_EARLY_FOR_RERUN  # after `st.rerun`: half drawn until the next run

# asked: number of reruns requested by the page. waits: time of the oldest request without an answer. begun, ended,
# request, last: times of the latest script start, complete script end, request, and message. A protobuf message
# consists of fields, each after a number and wire type; the fields present tell its kind.
WIRE = (
    """(() => {
  const wire = window.wire = {asked: 0, told: 0, waits: 0, request: 0, begun: 0, ended: 0, last: 0};
  const now = () => performance.now();
  const varint = (bytes, at) => {
    let value = 0, shift = 1;
    for (;; shift *= 128) {
      value += (bytes[at] & 127) * shift;
      if (bytes[at++] < 128) return [value, at];
    }
  };
  const fields = bytes => {
    const values = new Map();
    for (let at = 0, tag, size; at < bytes.length;) {
      [tag, at] = varint(bytes, at);
      size = 0;
      if (tag % 8 === 0) [size, at] = varint(bytes, at);
      else if (tag % 8 === 1) at += 8;
      else if (tag % 8 === 5) at += 4;
      else { [size, at] = varint(bytes, at); at += size; }
      values.set(Math.floor(tag / 8), size);
    }
    return values;
  };
  const bytes = data => ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
  const heard = event => {
    if (!(event.data instanceof ArrayBuffer)) return;
    wire.last = now();
    const kinds = fields(bytes(event.data));
    if (kinds.has(BEGUN)) { wire.begun = now(); wire.waits = 0; }
    if (kinds.has(ENDED) && kinds.get(ENDED) !== GOES_ON) wire.ended = now();
  };
  const known = new WeakSet(), send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (!known.has(this)) {
      known.add(this);
      this.addEventListener("message", heard);
    }
    if (typeof data !== "string" && fields(bytes(data)).has(RERUN)) {
      wire.asked += 1;
      wire.request = wire.last = now();
      wire.waits ||= wire.request;
    }
    return send.call(this, data);
  };
  wire.news = () => {
    const news = wire.asked > wire.told;
    wire.told = wire.asked;
    wire.since = now();
    return news;
  };
  wire.quiet = grace => {
    const app = document.querySelector("[data-testid=stApp]").dataset;
    // A part that refreshes itself and is gone meanwhile is not run, and nobody says so.
    const answered = wire.request <= wire.begun && wire.begun <= wire.ended || wire.waits && now() - wire.waits > 10000;
    return app.testConnectionState === "CONNECTED" && app.testScriptState === "notRunning" && wire.ended > 0
      && answered && now() - wire.since > grace && now() - wire.last > Math.max(30, grace / 2);
  };
})()""".replace("RERUN", str(RERUN))
    .replace("BEGUN", str(BEGUN))
    .replace("ENDED", str(ENDED))
    .replace("GOES_ON", str(GOES_ON))
)
