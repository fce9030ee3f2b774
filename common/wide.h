#ifndef CLEW_COMMON_WIDE_H_
#define CLEW_COMMON_WIDE_H_

namespace clew {

// 128 bits, for products of clock values. A compiler extension, named once.
__extension__ typedef unsigned __int128 Wide;

}  // namespace clew

#endif  // CLEW_COMMON_WIDE_H_
