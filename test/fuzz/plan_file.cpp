// A file with a plan or a set of plans: read as it is, or with a header that fits its description and its contents.
#include "core/escape_text.hpp"
#include "input.hpp"
#include "support/plan_files.hpp"

#include <span>

namespace {

using namespace coaccel;
using fuzz::require;

void check_refusal(const error_code& ec)
{
    require(errc_of(ec) != errc{}, "a refusal has an errc");
    require(!ec.message().empty(), "a refusal has a message");
    require(detail::escape_text(ec.message()) == ec.message(), "a message has no control characters");
}

void read(std::span<const std::byte> file, content_check check)
{
    const auto set = test::read_set_file(file, check);
    const auto plan = test::read_file(file, check);
    if (!set)
        check_refusal(set.error());
    if (!plan)
        check_refusal(plan.error());
    // What was read is as good as what comes from a builder.
    if (set) {
        require(!set.value().to_text().empty(), "a set has a text");
        require(!set.value().to_graphviz().empty(), "a set has a graph");
        const auto again = test::read_set_file(test::file_of(set.value()), content_check::none);
        require(again.has_value(), "a set that was read can be written and read");
        require(again.value() == set.value(), "it stays the same set");
        require(again.value().to_text() == set.value().to_text(), "it has the same text");
    }
    if (plan) {
        require(set && set.value().size() == 1 && set.value()[0] == plan.value(), "a plan is a set of one");
        require(!plan.value().to_text().empty(), "a plan has a text");
        const auto again = test::read_file(test::file_of(plan.value()), content_check::none);
        require(again.has_value(), "a plan that was read can be written and read");
        require(again.value() == plan.value(), "it stays the same plan");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz::input in(data, size);
    const auto flags = in.take<std::uint8_t>();
    const auto check = (flags & fuzz::unchecked) != 0 ? content_check::none : content_check::hash;
    if ((flags & fuzz::sealed) == 0) {
        read(in.take_rest(), check);
        return 0;
    }
    const auto description = in.take_record();
    read(test::file_with(description, in.take_rest()), check);
    return 0;
}
