#ifndef CLEW_TESTS_RECORDER_VALUE_AT_H_
#define CLEW_TESTS_RECORDER_VALUE_AT_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/load_at.h"

namespace clew::recorder {

// The Int at `offset` of a file. Behind its end: 0, and the test has failed.
template <class Int>
Int ValueAt(std::span<const std::byte> file, uint64_t offset) {
  Int value = {};
  EXPECT_TRUE(LoadAt(file, offset, value)) << "offset " << offset;
  return value;
}

}  // namespace clew::recorder

#endif  // CLEW_TESTS_RECORDER_VALUE_AT_H_
