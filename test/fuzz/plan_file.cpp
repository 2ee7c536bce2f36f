// A file with a plan: read as it is, or with a header that fits its description and its contents.
#include "input.hpp"
#include "support/plan_files.hpp"

#include <memory>
#include <span>

namespace {

using namespace coaccel;
using fuzz::require;

void read(std::span<const std::byte> file, content_check check)
{
    // Exactly its size: the address sanitizer detects access beyond it.
    const auto room = std::make_unique<std::byte[]>(file.size());
    std::copy(file.begin(), file.end(), room.get());
    const auto made = detail::read_plan({room.get(), file.size()}, nullptr, check, "file");
    if (!made) {
        require(errc_of(made.error()) != errc{}, "a refusal has an errc");
        require(!made.error().message().empty(), "a refusal has a message");
        return;
    }
    // A plan that was read is as good as one from a builder.
    require(!made.value().to_text().empty(), "a plan has a text");
    const auto again = test::read_file(test::file_of(made.value()), content_check::none);
    require(again.has_value(), "a plan that was read can be written and read");
    require(again.value() == made.value(), "it stays the same plan");
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
