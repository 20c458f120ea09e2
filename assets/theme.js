// Apply a chosen theme to all pages and rerun the script. Streamlit stores a theme only for the page on which it was
// chosen, and redraws charts only at the next run of the script.
export default function ({ setTriggerValue }) {
  const chosen = (event) => {
    const item = event.target.closest?.('[data-testid^="stMainMenuItem-theme-"]');
    if (!item) return;
    const theme = item.dataset.testid.replace("stMainMenuItem-theme-", "");
    setTimeout(() => {
      for (const link of document.querySelectorAll('[data-testid="stSidebar"] a[href]')) {
        localStorage.setItem(`stActiveTheme-${new URL(link.href).pathname}-v2`, JSON.stringify(theme));
      }
      setTriggerValue("theme", theme);
    });
  };
  document.addEventListener("click", chosen, true);
  return () => document.removeEventListener("click", chosen, true);
}
