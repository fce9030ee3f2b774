#ifndef CLEW_TESTS_SUPPORT_MUST_H_
#define CLEW_TESTS_SUPPORT_MUST_H_

#include <utility>

#include "common/check.h"
#include "common/result.h"

namespace clew::test {

// The value of a result in what a test sets up.
template <class T>
T Must(Result<T> result) {
  CLEW_CHECK(result.has_value(), "{}", result.error().message);
  return std::move(*result);
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_MUST_H_
