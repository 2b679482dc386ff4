// Shows the API description. The viewer has no dark colors of its own accord: it follows a class.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  follow();
  dark.addEventListener("change", follow);

  SwaggerUIBundle({
    domNode: document.getElementById("api"),
    url: document.getElementById("api").dataset.description,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    defaultModelExpandDepth: 2,
    displayRequestDuration: true,
    requestSnippetsEnabled: false,
    validatorUrl: null,
    syntaxHighlight: { theme: "nord" },
    tryItOutEnabled: true,
  });
})();
