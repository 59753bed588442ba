import { LabIcon } from "@jupyterlab/ui-components";

/** Blocks in segments over a lane with a gap, in the colour of the theme. */
export const gpuIcon = new LabIcon({
  name: "gpuviz:gpu",
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3" fill="#616161">
    <path d="M2 2h3v7H2z"/><path d="M6 5h4v4H6z"/><path d="M11 3h3v6h-3z"/>
    <path d="M2 11h7v3H2z"/><path d="M11 11h3v3h-3z"/>
  </g>
</svg>`,
});
