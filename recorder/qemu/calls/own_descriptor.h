#ifndef CLEW_RECORDER_QEMU_CALLS_OWN_DESCRIPTOR_H_
#define CLEW_RECORDER_QEMU_CALLS_OWN_DESCRIPTOR_H_

#include <vector>

namespace clew::recorder {

// Descriptors that the recorder has open in the traced process. Their numbers
// are high, so that the program gets the low ones that it expects, and
// IsOwnDescriptor tells them from the program's: closing all descriptors, as
// daemons do at their start, shall not close these. Any thread may call these;
// in a copy of the process, too.

// Moves `fd` as high as the limit allows, with room for others. The number that
// it has then, which is `fd` itself where no other is free.
int TakeDescriptor(int fd);
// Closes what TakeDescriptor gave. As close(2).
int CloseOwnDescriptor(int fd);
bool IsOwnDescriptor(int fd);

struct DescriptorRange {
  unsigned first = 0;
  unsigned last = 0;  // included
};
// What `range` has beside own descriptors, in ascending order.
std::vector<DescriptorRange> WithoutOwn(DescriptorRange range);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_OWN_DESCRIPTOR_H_
