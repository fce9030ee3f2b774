#ifndef CLEW_TESTS_SUPPORT_HEADERS_H_
#define CLEW_TESTS_SUPPORT_HEADERS_H_

// As cmake/headers.h, of test programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/headers.h"

#endif  // CLEW_TESTS_SUPPORT_HEADERS_H_
