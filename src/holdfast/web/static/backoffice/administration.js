// The address of a new project follows its name, until somebody types one.
"use strict";

for (const form of document.querySelectorAll("[data-suggests-slug]")) {
  const { name, slug } = form.elements;
  let ours = slug.value === "";
  slug.addEventListener("input", () => { ours = slug.value === ""; });
  name.addEventListener("input", () => { if (ours) slug.value = suggested(name.value); });
}

function suggested(name) {
  const plain = name.normalize("NFKD").toLowerCase().replace(/[^\x00-\x7f]/g, "");
  return (plain.match(/[a-z0-9]+/g) || []).join("-").slice(0, 100).replace(/-+$/, "");
}
