#ifndef CLEW_TESTS_DECODER_CODE_BASE_H_
#define CLEW_TESTS_DECODER_CODE_BASE_H_

#include <cstdint>

namespace clew::decoder {

// Where made-up programs have their code.
inline constexpr uint64_t kCodeBase = 0x400000;

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_CODE_BASE_H_
