/** The part of a demangled kernel name that tells it from others: no arguments, no scopes. */
export function shortKernelName(name: string): string {
  const plain = withoutGroups(withoutGroups(name, "<", ">"), "(", ")").trim();
  const last = plain.split("::").at(-1)?.split(" ").at(-1) ?? "";
  return last === "" ? name : last;
}

function withoutGroups(text: string, open: string, close: string): string {
  let depth = 0;
  let kept = "";
  for (const sign of text) {
    if (sign === open) {
      depth += 1;
    } else if (sign === close && depth > 0) {
      depth -= 1;
    } else if (depth === 0) {
      kept += sign;
    }
  }
  return kept;
}
