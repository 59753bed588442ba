import assert from "node:assert/strict";
import { test } from "node:test";

import { shortKernelName } from "./kernel_name.ts";

test("a kernel's short name has neither scopes nor arguments", () => {
  const names = {
    "void smooth<float, 4>(float const*, float*, int)": "smooth",
    "void cub::(anonymous namespace)::Reduce<Policy<1>, float*>(float*)": "Reduce",
    cupy_multiply__float32_float_float32: "cupy_multiply__float32_float_float32",
    "<lambda>": "<lambda>",
  };

  for (const [name, short] of Object.entries(names)) {
    assert.equal(shortKernelName(name), short);
  }
});
