#ifndef COACCEL_TEST_SUPPORT_PLAN_FILES_HPP
#define COACCEL_TEST_SUPPORT_PLAN_FILES_HPP

#include "plan/content_hash.hpp"
#include "plan/file/plan_file.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Files with plans as bytes in memory.
namespace test {

using file_bytes = std::vector<std::byte>;

inline file_bytes joined(const coaccel::detail::plan_file_parts& parts)
{
    file_bytes made = parts.head;
    for (const coaccel::detail::plan_content& content : parts.contents) {
        made.resize(coaccel::detail::aligned_content(made.size()));
        made.insert(made.end(), content.data.get(), content.data.get() + content.bytes);
    }
    return made;
}

/// As save() writes it.
inline file_bytes file_of(const coaccel::plan_description& d)
{
    return joined(coaccel::detail::write_plan(d).value());
}

inline file_bytes file_of(const coaccel::plan_set_description& d)
{
    return joined(coaccel::detail::write_plan_set(d).value());
}

inline coaccel::detail::plan_file_header header_of(const file_bytes& file)
{
    coaccel::detail::plan_file_header h{};
    std::memcpy(&h, file.data(), std::min(sizeof(h), file.size()));
    return h;
}

inline std::span<std::byte> description_of(file_bytes& file)
{
    return std::span(file).subspan(sizeof(coaccel::detail::plan_file_header), header_of(file).description_bytes);
}

/// Sets sizes and hash in the header to what the file has, as in a file that was changed on purpose.
inline void seal(file_bytes& file)
{
    auto h = header_of(file);
    h.file_bytes = file.size();
    const auto d = description_of(file);
    h.description = coaccel::detail::hash_content(d.data(), d.size());
    std::memcpy(file.data(), &h, sizeof(h));
}

/// A file with this description, followed by `contents`.
inline file_bytes file_with(std::span<const std::byte> description, std::span<const std::byte> contents = {})
{
    using namespace coaccel::detail;
    plan_file_header h{};
    std::memcpy(h.magic, plan_file_magic, sizeof(h.magic));
    h.version = plan_file_version;
    h.description_bytes = description.size();
    file_bytes made(sizeof(h));
    std::memcpy(made.data(), &h, sizeof(h));
    made.insert(made.end(), description.begin(), description.end());
    if (!contents.empty())
        made.resize(aligned_content(made.size()));
    made.insert(made.end(), contents.begin(), contents.end());
    seal(made);
    return made;
}

/// The position of a text in the description; the size of the file if it is not there.
inline std::size_t find_in_description(file_bytes& file, std::string_view what)
{
    const auto d = description_of(file);
    const auto wanted = std::as_bytes(std::span(what));
    const auto found = std::search(d.begin(), d.end(), wanted.begin(), wanted.end());
    return found == d.end() ? file.size() : sizeof(coaccel::detail::plan_file_header) + std::size_t(found - d.begin());
}

/// Replaces the first occurrence of `what` in the description by a text of the same length.
inline bool replace(file_bytes& file, std::string_view what, std::string_view with)
{
    const auto at = find_in_description(file, what);
    if (at == file.size() || what.size() != with.size())
        return false;
    std::memcpy(file.data() + at, with.data(), with.size());
    seal(file);
    return true;
}

/// Replaces every occurrence.
inline bool replace_all(file_bytes& file, std::string_view what, std::string_view with)
{
    const bool found = replace(file, what, with);
    while (what != with && replace(file, what, with)) {
    }
    return found;
}

/// A number as it is in a file: after its name, with its type.
template <class T>
std::string number(std::string_view name, T value)
{
    std::string made(name);
    made += static_cast<char>(coaccel::dtype_v<T>);
    made.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return made;
}

/// A file in memory of exactly its size, so that the address sanitizer detects access beyond it.
inline coaccel::detail::plan_file_source source_of(std::span<const std::byte> file, coaccel::content_check check)
{
    const auto room = std::make_shared_for_overwrite<std::byte[]>(file.size());
    std::copy(file.begin(), file.end(), room.get());
    return {.bytes = {room.get(), file.size()}, .owner = room, .check = check, .name = "test"};
}

inline coaccel::result<coaccel::plan_description> read_file(std::span<const std::byte> file,
                                                            coaccel::content_check check = coaccel::content_check::hash)
{
    return coaccel::detail::read_plan(source_of(file, check));
}

inline coaccel::result<coaccel::plan_set_description>
read_set_file(std::span<const std::byte> file, coaccel::content_check check = coaccel::content_check::hash)
{
    return coaccel::detail::read_plan_set(source_of(file, check));
}

/// The addresses at which this process has mapped the file: begin and end.
inline std::vector<std::pair<std::uintptr_t, std::uintptr_t>> mappings_of(const std::string& path)
{
    std::ifstream maps("/proc/self/maps");
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> made;
    for (std::string line; std::getline(maps, line);)
        if (line.find(path) != line.npos) {
            std::size_t end = 0;
            const auto begin = std::stoull(line, &end, 16);
            made.emplace_back(begin, std::stoull(line.substr(end + 1), nullptr, 16));
        }
    return made;
}

/// Every kind of slot, value and op, except kernels.
inline coaccel::plan_description varied_plan()
{
    using namespace coaccel;
    plan_builder b("varied");
    const auto x = b.input<float>(4, "x");
    const auto w = b.constant<float>(std::vector<float>{1, 2, 3, 4}, "w");
    const auto t = b.scratch<float>(2, "t");
    const auto s = b.state<float>(2, "s");
    const auto u = b.state<float>(std::vector<float>{5, 6}, "u");
    const auto y = b.output<float>(2, "y");
    const auto r = b.output<float>(3, "r");
    const auto g = rand::make_generator({.seed = 7});
    b.add(blas::gemv<float>{
        .a = w, .x = x.first(2), .y = t, .m = 2, .n = 2, .alpha = 0.5f, .trans = blas::transpose::yes});
    b.add(plugin::call("f", in(t), inout(s), 7, 2.5, true));
    b.add(blas::axpy<float>{.x = s, .y = u, .n = 2});
    b.add(memory::copy<float>{u, y});
    b.add(rand::uniform<float>{.dst = r.first(2), .from = g});
    b.add(store_reply(blas::dot<float>{.x = t, .y = t, .n = 2}, r.subspan(2, 1)));
    return b.finish().value();
}

/// Plans that have in common two states with an initial content, a durable one, and a constant; and that have such
/// slots to themselves.
inline coaccel::plan_set_description varied_set()
{
    using namespace coaccel;
    plan_set_builder set("varied");
    const auto a = set.state<float>(std::vector<float>{1, 2}, "a");
    const auto b = set.state<float>(std::vector<float>{1, 2}, "b");
    const auto c = set.state<float>(2, durable{suspect_rule::reset}, "c");
    const auto single = set.state<float>(std::vector<float>{3, 4}, durable{}, "single");
    const auto w = set.constant<float>(std::vector<float>{5, 6}, "w");
    for (const char* name : {"first", "second", "third"}) {
        plan_builder& p = set.plan(name);
        const auto x = p.input<float>(2, "x");
        const auto v = p.constant<float>(std::vector<float>{float(name[0]), 0}, "v");
        const auto own = p.state<float>(std::vector<float>{7, 8}, "own");
        const auto y = p.output<float>(2, "y");
        const auto alpha = p.parameter<float>("alpha");
        p.add(blas::axpy<float>{.x = v, .y = own, .n = 2});
        p.add(blas::gemv<float>{.a = w, .x = x.first(1), .y = own, .m = 2, .n = 1},
              bind(&blas::gemv<float>::beta, alpha));
        if (name[0] != 'f')
            p.add(memory::copy<float>{b, a});
        if (name[0] != 's')
            p.add(memory::copy<float>{x, c});
        if (name[0] == 't')
            p.add(memory::copy<float>{b, single});
        p.add(memory::copy<float>{name[0] == 'f' ? c : b, y});
    }
    return set.finish().value();
}

} // namespace test

#endif
