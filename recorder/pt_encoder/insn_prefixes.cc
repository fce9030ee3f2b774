#include "recorder/pt_encoder/insn_prefixes.h"

namespace clew::recorder {

InsnPrefixes PrefixesOf(std::span<const uint8_t> code) {
  InsnPrefixes prefixes;
  for (const uint8_t byte : code) {
    switch (byte) {
      case 0xf2:
      case 0xf3:
        prefixes.repeat = true;
        break;
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x64:
      case 0x65:
      case 0x66:
      case 0x67:
      case 0xf0:
        break;
      default:
        if (byte >> 4 != 4) {
          return prefixes;
        }
        break;
    }
    ++prefixes.bytes;
  }
  return prefixes;
}

}  // namespace clew::recorder
