// Conveniences only: every page works without this file. Nothing here sends an answer.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const typing = (element) => element && (element.matches("input:not([type=radio]):not([type=checkbox]), textarea, select") || element.isContentEditable);

  // Says that something changed, and never touches the page itself, so that no draft is lost.
  if (document.body.dataset.live === "true" && window.EventSource) {
    const source = new EventSource("/changes");
    let known = null;
    source.addEventListener("changed", (event) => {
      if (known !== null && known !== event.data) byId("changed").hidden = false;
      known = event.data;
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // A draft that is open in another tab is told of there.
  const form = document.querySelector("form[data-draft]");
  if (form && window.BroadcastChannel) {
    const channel = new BroadcastChannel("closer " + location.pathname);
    channel.postMessage("here");
    channel.addEventListener("message", (event) => {
      if (event.data === "here") channel.postMessage("too");
      if (byId("tabs")) return;
      const note = document.createElement("p");
      note.id = "tabs";
      note.className = "note";
      note.setAttribute("role", "status");
      note.textContent = "This is open in another tab too; only the first answer counts.";
      form.before(note);
    });
  }

  // Keys: off while typing, in dialogs, and with their switch.
  const help = byId("help");
  const on = byId("keys-on");
  if (!help || !on) return;
  byId("help-open").hidden = false;
  byId("help-open").addEventListener("click", () => help.showModal());
  on.checked = localStorage.getItem("keys") !== "off";
  on.addEventListener("change", () => localStorage.setItem("keys", on.checked ? "on" : "off"));
  let before = "";
  const entries = () => [...document.querySelectorAll("[data-entry]")];
  const move = (by) => {
    const all = entries();
    if (all.length === 0) return;
    const at = all.indexOf(document.activeElement);
    all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))].focus();
  };
  const to = (id) => {
    const element = byId(id);
    if (!element) return;
    element.setAttribute("tabindex", "-1");
    element.focus();
    element.scrollIntoView({ block: "start" });
  };
  document.addEventListener("keydown", (event) => {
    if (!on.checked || event.ctrlKey || event.metaKey || event.altKey || help.open || typing(event.target)) return;
    const key = event.key;
    const chord = before + key;
    before = key === "g" ? "g" : "";
    if (chord === "gb") location.assign("/");
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "e") to("evidence");
    else if (key === "d") to("diff");
    else if (key === "?") help.showModal();
    else if (/^[1-9]$/.test(key)) {
      const choice = document.querySelector(`[data-choice="${key}"]`);
      if (choice) { choice.checked = true; choice.focus(); }
      else return;
    } else return;
    event.preventDefault();
  });
})();
