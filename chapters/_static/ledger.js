// Filters the claims of the ledger, and keeps the filter in the address, so that it can be linked.
// Without this script the page shows all claims and no controls.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.ledger-filter");
  if (!form) return;
  const status = document.querySelector(".ledger-count");
  const rows = [...document.querySelectorAll(".ledger > details")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const controls = [...form.querySelectorAll("select, input")];

  function apply() {
    const { subject, verdict, article, words } = Object.fromEntries(new FormData(form));
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      const fits =
        (!subject || row.dataset.subject === subject) &&
        (!verdict || row.dataset.verdict === verdict) &&
        (!article || row.dataset.article === article) &&
        wanted.every((word) => texts[i].includes(word));
      row.hidden = !fits;
      shown += fits;
    });
    status.textContent =
      shown === rows.length ? `${shown} claims` : `${shown} of ${rows.length} claims`;
  }

  function writeAddress() {
    const set = controls.filter((control) => control.value.trim());
    const hash = new URLSearchParams(set.map((control) => [control.name, control.value.trim()]));
    // Replaced, not added: the reader's back button leaves the page at once.
    history.replaceState(null, "", set.length ? `#${hash}` : location.pathname + location.search);
  }

  function readAddress() {
    const hash = location.hash.slice(1);
    const given = new URLSearchParams(hash.includes("=") ? hash : "");
    for (const control of controls) {
      control.value = given.get(control.name) ?? "";
      if (control.selectedIndex === -1) control.value = ""; // no such choice
    }
    apply();
    const row = document.getElementById(hash);
    if (row && rows.includes(row)) {
      row.open = true;
      row.scrollIntoView();
    }
  }

  form.addEventListener("input", () => {
    apply();
    writeAddress();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", () => {
    for (const control of controls) control.value = "";
    apply();
    writeAddress();
  });
  window.addEventListener("hashchange", readAddress);
  form.hidden = false;
  readAddress();
});
