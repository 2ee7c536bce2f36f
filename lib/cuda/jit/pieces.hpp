#ifndef COACCEL_CUDA_JIT_PIECES_HPP
#define COACCEL_CUDA_JIT_PIECES_HPP

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace coaccel::cuda {

// A list of texts in one string. Each text is preceded by its length, so two different lists never give the same
// string.

inline void append_piece(std::string& to, std::string_view piece)
{
    const std::uint64_t size = piece.size();
    to.append(reinterpret_cast<const char*>(&size), sizeof(size));
    to.append(piece);
}

/// Removes and returns the first piece; nothing if it is incomplete.
inline std::optional<std::string_view> take_piece(std::string_view& from)
{
    std::uint64_t size = 0;
    if (from.size() < sizeof(size))
        return std::nullopt;
    std::memcpy(&size, from.data(), sizeof(size));
    if (size > from.size() - sizeof(size))
        return std::nullopt;
    const auto piece = from.substr(sizeof(size), size);
    from.remove_prefix(sizeof(size) + size);
    return piece;
}

} // namespace coaccel::cuda

#endif
