/** How much of the recording has been read, shown above the charts. */
export interface Progress {
  /** From 0 to 1. */
  value: number;
  readonly done: () => void;
}

export function showProgress(): Progress {
  const label = document.createElement("label");
  label.className = "gpuviz-reading";
  const bar = document.createElement("progress");
  bar.max = 1;
  const text = document.createElement("span");
  label.append("Reading the recording: ", bar, text);
  document.querySelector("main")?.prepend(label);
  return {
    get value(): number {
      return bar.value;
    },
    set value(share: number) {
      bar.value = share;
      text.textContent = ` ${Math.floor(share * 100)} %`;
    },
    done: () => label.remove(),
  };
}
