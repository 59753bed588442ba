import { Scope } from "../base/scope.ts";
import { luminance, pixelOf } from "../render/colour.ts";
import { context2d, element } from "./dom.ts";

/** Ours, and where a notebook has it: JupyterLab and Notebook 7, then VS Code. */
const COLOURS = [
  ["background", "--jp-layout-color0", "--vscode-editor-background"],
  ["panel", "--jp-layout-color2", "--vscode-sideBar-background"],
  ["border", "--jp-border-color1", "--vscode-panel-border"],
  ["text", "--jp-content-font-color1", "--vscode-editor-foreground"],
  ["muted", "--jp-content-font-color2", "--vscode-descriptionForeground"],
] as const;
const DARK_BELOW = 0.2;
const WANTS_CONTRAST = "(prefers-contrast: more), (forced-colors: active)";
/** In a palette of high contrast the rest is ours. */
const KEPT_IN_CONTRAST: readonly string[] = ["background", "text"];

/** Gives elements the notebook's own colours, and calls `changed` whenever these change. */
export function followHostTheme(elements: readonly HTMLElement[], changed: () => void): Scope {
  const scope = new Scope();
  const apply = (): void => {
    const colours = hostColours();
    const background = colours.get("background") ?? "#ffffff";
    const isDark = isDarkInColab() || luminance(pixelOf(background)) < DARK_BELOW;
    const isContrast = wanted.matches || themeName().includes("high contrast");
    for (const target of elements) {
      target.classList.toggle("gpuviz-theme--dark", isDark);
      target.classList.toggle("gpuviz-theme--contrast", isContrast);
      for (const [name] of COLOURS) {
        const isOurs = isContrast && !KEPT_IN_CONTRAST.includes(name);
        target.style.setProperty(`--gpuviz-${name}`, isOurs ? null : (colours.get(name) ?? null));
      }
    }
  };
  const again = (): void => {
    apply();
    changed();
  };
  const wanted = window.matchMedia(WANTS_CONTRAST);
  apply();
  wanted.addEventListener("change", again);
  scope.defer(() => wanted.removeEventListener("change", again));
  const observer = new MutationObserver(again);
  const watched = {
    attributes: true,
    attributeFilter: ["class", "style", "theme", "data-jp-theme-name"],
  };
  observer.observe(document.body, watched);
  observer.observe(document.documentElement, watched);
  // JupyterLab swaps the theme's style sheet, sometimes after it changed the name.
  observer.observe(document.head, { childList: true });
  scope.defer(() => observer.disconnect());
  return scope;
}

/** In output frames, Colab marks a dark theme by an attribute and defines no colours. */
function isDarkInColab(): boolean {
  return document.documentElement.getAttribute("theme") === "dark";
}

/** JupyterLab's name for its theme, VS Code's for its kind of theme. */
function themeName(): string {
  const { dataset } = document.body;
  const kind = dataset["vscodeThemeKind"]?.replaceAll("-", " ") ?? "";
  return `${dataset["jpThemeName"] ?? ""} ${kind}`.toLowerCase();
}

/** Colours of the notebook by our names, as `#rrggbb`; those that it has none for are left out. */
function hostColours(): Map<string, string> {
  const style = getComputedStyle(document.body);
  const pixel = context2d(element("canvas", ""), { willReadFrequently: true });
  const colours = new Map<string, string>();
  const background = style.getPropertyValue("--jp-layout-color0").trim();
  for (const [name, ...variables] of COLOURS) {
    const value = variables
      .map((variable) => style.getPropertyValue(variable).trim())
      .find(Boolean);
    if (value !== undefined) {
      colours.set(name, opaque(pixel, background, value));
    }
  }
  return colours;
}

/** A colour as it looks on a background. */
function opaque(pixel: CanvasRenderingContext2D, background: string, colour: string): string {
  for (const layer of ["#ffffff", background, colour].filter((each) => each !== "")) {
    pixel.fillStyle = layer;
    pixel.fillRect(0, 0, 1, 1);
  }
  const [red = 0, green = 0, blue = 0] = pixel.getImageData(0, 0, 1, 1).data;
  return `#${((red << 16) | (green << 8) | blue).toString(16).padStart(6, "0")}`;
}
