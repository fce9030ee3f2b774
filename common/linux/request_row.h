#ifndef CLEW_COMMON_LINUX_REQUEST_ROW_H_
#define CLEW_COMMON_LINUX_REQUEST_ROW_H_

#include "common/linux/request_table.h"

// How the rows in requests_<calls>.h are written. A row is
//
//   CLEW_REQUEST(name, "widths of the call's arguments", .column = value, ...)
//
// with the columns in the order of RequestRow; without `bytes` the kernel
// writes nothing. Number and name come from the one word, and widths are always
// there: no row can lack them.

#define CLEW_REQUEST(request, widths, ...) \
  {.name = #request,                       \
   .number = request,                      \
   .arguments = widths __VA_OPT__(, ) __VA_ARGS__}

namespace clew::request_rows {

inline constexpr uint16_t kInt = sizeof(int);
inline constexpr uint16_t kLong = sizeof(long);

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUEST_ROW_H_
