// A browser gives the files of a dropped folder without the folders that they lie in. Streamlit's drop area knows these
// (`relativePath`), but sends a file by its bare name unless `webkitRelativePath` has more: here it has.
export default function () {
  const bare = Object.getOwnPropertyDescriptor(File.prototype, "webkitRelativePath");
  if (bare.get.name === "withFolders") return;
  const withFolders = function () {
    return bare.get.call(this) || (this.relativePath ?? "").replace(/^\.?\//, "");
  };
  Object.defineProperty(File.prototype, "webkitRelativePath", { ...bare, get: withFolders });
}
