// Streamlit keeps a chosen theme for the page alone on which it was chosen, and draws charts anew with the script's
// next run only. Here a theme is chosen for all pages, and the script runs.
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
