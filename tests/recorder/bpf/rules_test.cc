// Goal: the rules say all that the tables of calls and of requests know, as far
// as the program in the kernel can follow them.
// Method: exhaustive over the rows. That it takes them: kernel_test.cc.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "common/linux/raw_rules.h"
#include "common/linux/request_table.h"

namespace clew {
namespace {

TEST(SyscallRulesTest, EveryCallHasItsRuleUnlessNothingIsKnownOfIt) {
  for (const SyscallRow& row : AllSyscalls()) {
    EXPECT_LT(row.number, CLEW_RAW_RULES) << row.name;
    EXPECT_EQ(RuleFor(row.number).known != 0,
              row.effects != KnownEffects::kNone)
        << row.name;
  }
}

bool IsTold(RequestExtent extent) {
  return extent == RequestExtent::kFixed || extent == RequestExtent::kResult;
}

TEST(SyscallRulesTest, EveryRequestIsToldWhoseExtentIsFixedOrTheResult) {
  std::map<std::pair<uint32_t, uint32_t>, RawWritten> told;
  for (const RawRequestRule& rule : RequestRules()) {
    told[{rule.request.number, rule.request.request}] = rule.written;
  }
  size_t rows = 0;
  for (const RequestCall& call : AllRequestCalls()) {
    const RawRule rule = RuleFor(call.number);
    EXPECT_EQ(rule.special, kRawRequest) << call.number;
    EXPECT_EQ(rule.request, call.argument) << call.number;
    for (const RequestRow& row : call.rows) {
      const auto found = told.find({call.number, row.number});
      ++rows;
      ASSERT_NE(found, told.end()) << row.name;
      const RawWritten& written = found->second;
      EXPECT_EQ(written.arg, call.argument + row.behind) << row.name;
      EXPECT_EQ(written.bytes,
                IsTold(row.extent) ? row.bytes : CLEW_RAW_REQUEST_UNKNOWN)
          << row.name;
      EXPECT_EQ(written.size,
                row.extent == RequestExtent::kResult ? kRawResult : kRawFixed)
          << row.name;
    }
  }
  EXPECT_EQ(told.size(), rows);
  EXPECT_LE(rows, CLEW_RAW_REQUESTS);
}

}  // namespace
}  // namespace clew
