import { PickleBytes } from "./pickle_bytes.ts";
import { PickleStack } from "./pickle_stack.ts";
import { OTHER, PickleError, PickleFloat, type PickleValue } from "./pickle_value.ts";

// The opcodes are those of Python's Lib/pickletools.py.
const PROTOCOL = 0x80;
const STOP = 0x2e;
const REFUSED: Readonly<Record<number, string>> = {
  0x63: "GLOBAL",
  0x93: "STACK_GLOBAL",
  0x52: "REDUCE",
  0x62: "BUILD",
  0x69: "INST",
  0x6f: "OBJ",
  0x81: "NEWOBJ",
  0x92: "NEWOBJ_EX",
  0x50: "PERSID",
  0x51: "BINPERSID",
  0x82: "EXT1",
  0x83: "EXT2",
  0x84: "EXT4",
  0x97: "NEXT_BUFFER",
  0x98: "READONLY_BUFFER",
};
const OPCODES_BETWEEN_LOOKS = 1 << 14;
const LONGEST_WITHOUT_PAUSE_MS = 40;

/** Whether a file that starts so is a pickle of protocol 2 or later. */
export function isPickle(bytes: Uint8Array): boolean {
  return bytes[0] === PROTOCOL;
}

/**
 * The value that a pickle of protocol 2 to 5 has, of plain values only.
 *
 * Nothing in it is executed: what would import, call or build anything is refused. The page can
 * draw in between; `news` gets the bytes so far and the bytes in all.
 */
export async function readPickle(
  bytes: Uint8Array<ArrayBuffer>,
  news: (done: number, total: number) => void = () => undefined,
): Promise<PickleValue> {
  const reader = new PickleReader(new PickleBytes(bytes));
  while (!reader.goOnFor(LONGEST_WITHOUT_PAUSE_MS)) {
    news(reader.offset, bytes.length);
    await new Promise((resolve) => setTimeout(resolve));
  }
  return reader.value;
}

class PickleReader {
  readonly #bytes: PickleBytes;
  readonly #stack = new PickleStack();
  #opcodeOffset = 0;

  constructor(bytes: PickleBytes) {
    this.#bytes = bytes;
    if (bytes.size < 2 || bytes.byte() !== PROTOCOL) {
      throw new PickleError(0, "there is no pickle of protocol 2 to 5");
    }
    const protocol = bytes.byte();
    if (protocol < 2 || protocol > 5) {
      throw new PickleError(1, `the pickle is of protocol ${protocol}, expected 2 to 5`);
    }
  }

  get offset(): number {
    return this.#bytes.offset;
  }

  get value(): PickleValue {
    return this.#stack.only();
  }

  /** Reads until some time has gone by; whether the end was reached. */
  goOnFor(ms: number): boolean {
    const latest = performance.now() + ms;
    do {
      for (let count = 0; count < OPCODES_BETWEEN_LOOKS; count += 1) {
        this.#opcodeOffset = this.#bytes.offset;
        const opcode = this.#bytes.byte();
        this.#stack.offset = this.#opcodeOffset;
        if (opcode === STOP) {
          return true;
        }
        this.#step(opcode);
      }
    } while (performance.now() < latest);
    return false;
  }

  #step(opcode: number): void {
    if (
      this.#stepMemo(opcode) ||
      this.#stepScalar(opcode) ||
      this.#stepText(opcode) ||
      this.#stepContainer(opcode) ||
      this.#stepStack(opcode)
    ) {
      return;
    }
    const refused = REFUSED[opcode];
    const name = `0x${opcode.toString(16).padStart(2, "0")}`;
    throw new PickleError(
      this.#opcodeOffset,
      refused === undefined
        ? `the opcode ${name} is not one that a memory snapshot has in protocols 2 to 5`
        : `the file asks to run code (opcode ${refused}), which is refused; a memory snapshot has plain values only`,
    );
  }

  #stepMemo(opcode: number): boolean {
    const bytes = this.#bytes;
    const stack = this.#stack;
    switch (opcode) {
      case 0x68: // BINGET
        stack.recall(bytes.byte());
        return true;
      case 0x6a: // LONG_BINGET
        stack.recall(bytes.uint32());
        return true;
      case 0x94: // MEMOIZE
        stack.remember(undefined);
        return true;
      case 0x71: // BINPUT
        stack.remember(bytes.byte());
        return true;
      case 0x72: // LONG_BINPUT
        stack.remember(bytes.uint32());
        return true;
      default:
        return false;
    }
  }

  #stepScalar(opcode: number): boolean {
    const bytes = this.#bytes;
    const stack = this.#stack;
    switch (opcode) {
      case 0x4e: // NONE
        stack.push(undefined);
        return true;
      case 0x88: // NEWTRUE
      case 0x89: // NEWFALSE
        stack.push(opcode === 0x88);
        return true;
      case 0x4b: // BININT1
        stack.push(bytes.byte());
        return true;
      case 0x4d: // BININT2
        stack.push(bytes.uint16());
        return true;
      case 0x4a: // BININT
        stack.push(bytes.int32());
        return true;
      case 0x8a: // LONG1
        this.#pushLong(bytes.byte());
        return true;
      case 0x8b: // LONG4
        this.#pushLong(bytes.uint32());
        return true;
      case 0x47: // BINFLOAT
        stack.push(new PickleFloat(bytes.float64()));
        return true;
      default:
        return false;
    }
  }

  #pushLong(width: number): void {
    if (width <= 8) {
      this.#stack.push(this.#bytes.integer(width));
      return;
    }
    if (width > 9) {
      this.#bytes.skip(width);
      this.#stack.push(OTHER);
      return;
    }
    const low = this.#bytes.uint32();
    const high = this.#bytes.uint32();
    const isUnsigned64 = this.#bytes.byte() === 0;
    this.#stack.push(isUnsigned64 ? (BigInt(high) << 32n) | BigInt(low) : OTHER);
  }

  #stepText(opcode: number): boolean {
    const bytes = this.#bytes;
    switch (opcode) {
      case 0x8c: // SHORT_BINUNICODE
      case 0x55: // SHORT_BINSTRING
        this.#stack.pushText(bytes.text(bytes.byte()));
        return true;
      case 0x58: // BINUNICODE
      case 0x54: // BINSTRING
        this.#stack.pushText(bytes.text(bytes.uint32()));
        return true;
      case 0x8d: // BINUNICODE8
        this.#stack.pushText(bytes.text(bytes.uint64()));
        return true;
      case 0x43: // SHORT_BINBYTES
        this.#pushOther(bytes.byte());
        return true;
      case 0x42: // BINBYTES
        this.#pushOther(bytes.uint32());
        return true;
      case 0x8e: // BINBYTES8
      case 0x96: // BYTEARRAY8
        this.#pushOther(bytes.uint64());
        return true;
      default:
        return false;
    }
  }

  #pushOther(size: number): void {
    this.#bytes.skip(size);
    this.#stack.push(OTHER);
  }

  #stepContainer(opcode: number): boolean {
    const stack = this.#stack;
    switch (opcode) {
      case 0x5d: // EMPTY_LIST
        stack.pushItems("list", 0);
        return true;
      case 0x7d: // EMPTY_DICT
        stack.pushItems("dict", 0);
        return true;
      case 0x29: // EMPTY_TUPLE
        stack.pushItems("tuple", 0);
        return true;
      case 0x8f: // EMPTY_SET
        stack.pushItems("set", 0);
        return true;
      case 0x6c: // LIST
        stack.pushItems("list", stack.popMark());
        return true;
      case 0x74: // TUPLE
        stack.pushItems("tuple", stack.popMark());
        return true;
      case 0x64: // DICT
        stack.pushItems("dict", stack.popMark());
        return true;
      case 0x91: // FROZENSET
        stack.pushItems("set", stack.popMark());
        return true;
      case 0x85: // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        stack.pushItems("tuple", opcode - 0x84);
        return true;
      default:
        return false;
    }
  }

  #stepStack(opcode: number): boolean {
    const stack = this.#stack;
    switch (opcode) {
      case 0x28: // MARK
        stack.mark();
        return true;
      case 0x61: // APPEND
        stack.extend("list", 1);
        return true;
      case 0x65: // APPENDS
        stack.extend("list", stack.popMark());
        return true;
      case 0x73: // SETITEM
        stack.extend("dict", 2);
        return true;
      case 0x75: // SETITEMS
        stack.extend("dict", stack.popMark());
        return true;
      case 0x90: // ADDITEMS
        stack.extend("set", stack.popMark());
        return true;
      case 0x30: // POP
        stack.popOrUnmark();
        return true;
      case 0x31: // POP_MARK
        stack.drop(stack.popMark());
        return true;
      case 0x32: // DUP
        stack.push(stack.top());
        return true;
      case 0x95: // FRAME
        this.#checkFrame();
        return true;
      default:
        return false;
    }
  }

  #checkFrame(): void {
    const length = this.#bytes.uint64();
    const left = this.#bytes.size - this.#bytes.offset;
    if (length > left) {
      throw new PickleError(
        this.#opcodeOffset,
        `the file is truncated; a frame of ${length} bytes must follow, there are ${left}`,
      );
    }
  }
}
