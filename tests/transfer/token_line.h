#ifndef CLEW_TESTS_TRANSFER_TOKEN_LINE_H_
#define CLEW_TESTS_TRANSFER_TOKEN_LINE_H_

#include <fmt/format.h>

#include <span>
#include <string>

#include "common/text/hex.h"
#include "transfer/sha256.h"

namespace clew::transfer {

// The line of a collector's file of tokens that makes `token` the host's.
inline std::string TokenLine(const std::string& host,
                             const std::string& token) {
  return fmt::format("{} {}\n", host,
                     ToHex(Sha256Of(std::as_bytes(std::span(token)))));
}

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_TOKEN_LINE_H_
