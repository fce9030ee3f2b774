#ifndef CLEW_COMMON_SANITIZER_H_
#define CLEW_COMMON_SANITIZER_H_

namespace clew {

// Whether this is built with AddressSanitizer, which maps terabytes of address
// space and some of its low end for its own use. g++ and clang++ say it in
// different ways.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace clew

#endif  // CLEW_COMMON_SANITIZER_H_
