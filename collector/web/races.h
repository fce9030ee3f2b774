#ifndef CLEW_COLLECTOR_WEB_RACES_H_
#define CLEW_COLLECTOR_WEB_RACES_H_

#include <string_view>
#include <vector>

#include "collector/web/html.h"
#include "collector/web/page_frame.h"

namespace clew::collector::web {

// What the witness shows: who holds what and who waits for it, of a hang; the
// accesses that got in each other's way, the best race open, others folded.
// Nothing where there is none.
void WriteRaces(HtmlWriter& html, std::string_view races_json);

// Bundles of a group by day, the last kDaysShown, as bars with figures for
// those who see none.
inline constexpr int64_t kDaysShown = 30;
void WriteDays(HtmlWriter& html, const PageContext& context,
               const std::vector<DayCount>& days);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_RACES_H_
