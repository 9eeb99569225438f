// Searches the index that lies beside this file; works from disk, asks no server.
(() => {
  "use strict";
  const input = document.getElementById("search");
  const list = document.getElementById("results");
  const root = document.body.dataset.root;
  const entries = window.KINA_INDEX.map((e) => ({ ...e, low: e.name.toLowerCase(), all: (e.name + " " + e.torch + " " + e.summary).toLowerCase() }));
  let chosen = -1;

  // Smaller is better: the name itself, its beginning, a part of it, then words anywhere.
  const rank = (e, words) => {
    if (!words.every((w) => e.all.includes(w))) return -1;
    const word = words[0];
    const last = e.low.slice(e.low.lastIndexOf(".") + 1);
    if (e.low === word || last === word) return 0;
    if (e.low.startsWith(word) || last.startsWith(word)) return 1;
    return e.low.includes(word) ? 2 : 3;
  };

  const find = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return entries
      .map((e) => [rank(e, words), e])
      .filter(([r]) => r >= 0)
      .sort((a, b) => a[0] - b[0] || a[1].name.length - b[1].name.length)
      .slice(0, 12)
      .map(([, e]) => e);
  };

  const line = (e) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const name = document.createElement("b");
    const kind = document.createElement("small");
    link.href = root + e.url;
    name.textContent = e.name;
    kind.textContent = " " + e.kind + " · " + e.summary;
    link.append(name, kind);
    item.append(link);
    return item;
  };

  const choose = (n) => {
    const links = [...list.querySelectorAll("a")];
    if (!links.length) return;
    chosen = (n + links.length) % links.length;
    links.forEach((a, i) => a.classList.toggle("chosen", i === chosen));
    links[chosen].scrollIntoView({ block: "nearest" });
  };

  const show = () => {
    const found = find(input.value);
    chosen = -1;
    list.replaceChildren(...found.map(line));
    if (!found.length && input.value.trim()) {
      const item = document.createElement("li");
      item.textContent = "Nothing is called so.";
      list.append(item);
    }
    list.hidden = !input.value.trim();
    choose(0);
  };

  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") { input.value = ""; show(); input.blur(); }
    else return;
    event.preventDefault();
  });
  document.getElementById("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const link = list.querySelectorAll("a")[Math.max(chosen, 0)];
    if (link) window.location.href = link.href;
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  document.addEventListener("click", (event) => { if (!event.target.closest("form")) list.hidden = true; });
})();
