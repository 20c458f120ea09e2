// Send the files of a dropped folder with their paths. Browsers leave `webkitRelativePath` empty for dropped files.
// Streamlit's drop area sets `relativePath`, but sends only the file name unless `webkitRelativePath` has the path.
export default function () {
  const bare = Object.getOwnPropertyDescriptor(File.prototype, "webkitRelativePath");
  if (bare.get.name === "withFolders") return;
  const withFolders = function () {
    return bare.get.call(this) || (this.relativePath ?? "").replace(/^\.?\//, "");
  };
  Object.defineProperty(File.prototype, "webkitRelativePath", { ...bare, get: withFolders });
}
