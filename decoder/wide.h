#ifndef CLEW_DECODER_WIDE_H_
#define CLEW_DECODER_WIDE_H_

namespace clew::decoder {

// 128 bits, for products of clock values. A compiler extension, named once.
__extension__ typedef unsigned __int128 Wide;

}  // namespace clew::decoder

#endif  // CLEW_DECODER_WIDE_H_
