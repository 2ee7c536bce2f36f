#include "worker/protocol/codec.hpp"

#include "core/escape_text.hpp"

#ifdef COACCEL_HAS_CUDA_HEADERS
#include "cuda/loader/vendor_category.hpp"
#endif

#include <algorithm>

namespace coaccel::worker {
namespace {

enum class origin : std::uint8_t { none, coaccel, noted, vendor, system, other };

const boost::system::error_category* vendor_category([[maybe_unused]] std::string_view name) noexcept
{
#ifdef COACCEL_HAS_CUDA_HEADERS
    return cuda::find_category(name);
#else
    return nullptr;
#endif
}

origin origin_of(const error_code& ec) noexcept
{
    if (!ec)
        return origin::none;
    if (ec.category() == coaccel_category())
        return origin::coaccel;
    if (errc_of(ec) != errc{})
        return origin::noted;
    if (vendor_category(ec.category().name()))
        return origin::vendor;
    return ec.category() == boost::system::system_category() ? origin::system : origin::other;
}

bool is_known(int value) noexcept
{
    return value >= static_cast<int>(errc::invalid_argument) && value <= static_cast<int>(errc::function_version);
}

/// Messages may have several lines, such as a compiler's log.
std::string printable_lines(std::string_view text)
{
    std::string out;
    for (std::size_t end = 0; end != text.npos; text.remove_prefix(std::min(end + 1, text.size()))) {
        end = text.find('\n');
        out += detail::escape_text(text.substr(0, end));
        if (end != text.npos)
            out += '\n';
    }
    return out;
}

} // namespace

void encoder::put_text(std::string_view text)
{
    text = text.substr(0, longest_text);
    put(static_cast<std::uint16_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text)));
}

void encoder::put_ref(const any_ref& ref)
{
    put(ref.device);
    put(ref.generation);
    put(ref.slot);
    put(ref.version);
    put(ref.offset);
    put(ref.size);
    put(ref.type);
}

void encoder::put_error(const error_code& ec)
{
    const origin from = origin_of(ec);
    put(from);
    if (from == origin::none)
        return;
    const bool ours = from == origin::coaccel || from == origin::noted;
    put(static_cast<std::int32_t>(ours ? static_cast<int>(errc_of(ec)) : ec.value()));
    if (from == origin::vendor)
        put_text(ec.category().name());
    else if (from == origin::noted || from == origin::other)
        put_text(ec.message());
}

bool decoder::get_text(std::string& text)
{
    std::uint16_t length = 0;
    std::span<const std::byte> bytes;
    if (!get(length) || !get_bytes(length, bytes))
        return false;
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
}

bool decoder::get_ref(any_ref& ref) noexcept
{
    return get(ref.device) && get(ref.generation) && get(ref.slot) && get(ref.version) && get(ref.offset) &&
           get(ref.size) && get(ref.type, dtype::f16, dtype::c128);
}

bool decoder::get_error(error_code& ec)
{
    origin from{};
    std::int32_t value = 0;
    std::string text;
    if (!get(from, origin::none, origin::other))
        return false;
    if (from == origin::none) {
        ec = {};
        return true;
    }
    if (!get(value) || value == 0)
        return false;
    switch (from) {
    case origin::none: break;
    case origin::coaccel: ec = static_cast<errc>(value); return is_known(value);
    case origin::system: ec = {value, boost::system::system_category()}; return true;
    case origin::noted:
        if (!is_known(value) || !get_text(text))
            return false;
        ec = make_error_with_message(static_cast<errc>(value), printable_lines(text));
        return true;
    case origin::vendor: {
        if (!get_text(text))
            return false;
        const auto* category = vendor_category(text);
        if (category)
            ec = {value, *category};
        return category != nullptr;
    }
    case origin::other:
        if (!get_text(text))
            return false;
        ec = make_error_with_message(errc::backend_error, printable_lines(text));
        return true;
    }
    return false;
}

} // namespace coaccel::worker
