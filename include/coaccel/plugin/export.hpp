#ifndef COACCEL_PLUGIN_EXPORT_HPP
#define COACCEL_PLUGIN_EXPORT_HPP

/// @file
/// For authors of a plug-in: a shared object whose functions a device calls by name.
///
/// C++17 and without Boost, so that nvcc accepts it. A plug-in does not link with coaccel and works with every release
/// that supports this version of the interface.

#include <coaccel/plugin/interface.hpp>

#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L
#include <span>
#endif

// Hidden, so that each plug-in in a process has its own table.
#pragma GCC visibility push(hidden)
namespace coaccel::plugin::detail {

inline table& own_table() noexcept
{
    static table t{interface_version, nullptr};
    return t;
}

template <class T>
constexpr type type_of() noexcept
{
    if constexpr (std::is_same_v<T, bool>)
        return type::boolean;
    else if constexpr (std::is_same_v<T, float>)
        return type::f32;
    else if constexpr (std::is_same_v<T, double>)
        return type::f64;
    else if constexpr (std::is_enum_v<T>)
        return type_of<std::underlying_type_t<T>>();
    else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
        constexpr int step = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return static_cast<type>(static_cast<int>(std::is_signed_v<T> ? type::i8 : type::u8) + step);
    } else
        return type::other;
}

template <class P>
struct taken {
    static_assert(std::is_trivially_copyable_v<P> && sizeof(P) <= max_value_bytes,
                  "a function of a plug-in takes spans, pointers, and plain values of at most 64 bytes");
    static constexpr parameter kind{form::value, type_of<P>(), sizeof(P)};

    static P get(const argument& a) noexcept
    {
        // Not every type has a default constructor.
        union room {
            room() {}
            P value;
        } r;
        std::memcpy(static_cast<void*>(&r.value), a.data, sizeof(P));
        return r.value;
    }
};

template <class T>
constexpr parameter buffer_of() noexcept
{
    return {std::is_const_v<T> ? form::read : form::write, type_of<std::remove_const_t<T>>(), sizeof(T)};
}

template <class T>
struct taken<T*> {
    static_assert(std::is_object_v<T>, "a pointer to elements");
    static constexpr parameter kind = buffer_of<T>();
    static T* get(const argument& a) noexcept { return static_cast<T*>(a.data); }
};

#if __cplusplus >= 202002L
template <class T, std::size_t N>
struct taken<std::span<T, N>> {
    static_assert(N == std::dynamic_extent, "nobody knows how many elements there will be");
    static constexpr parameter kind = buffer_of<T>();
    static std::span<T> get(const argument& a) noexcept
    {
        return {static_cast<T*>(a.data), static_cast<std::size_t>(a.count)};
    }
};
#endif

inline int explain(const char* text, char* why, std::size_t room) noexcept
{
    std::strncpy(why, text, room);
    why[room - 1] = 0;
    return 1;
}

template <class... Ps>
struct caller {
    static_assert(sizeof...(Ps) <= max_parameters, "too many parameters");
    // One extra element, because a function may have no parameters.
    static constexpr parameter parameters[] = {taken<Ps>::kind..., {}};

    static int call(void (*target)(), const stream& where, const argument* arguments, char* why,
                    std::size_t room) noexcept
    {
        try {
            call(reinterpret_cast<void (*)(stream, Ps...)>(target), where, arguments, std::index_sequence_for<Ps...>{});
        } catch (const std::exception& e) {
            return explain(e.what(), why, room);
        } catch (...) {
            return explain("it threw something that is no std::exception", why, room);
        }
        return 0;
    }

private:
    template <std::size_t... I>
    static void call(void (*f)(stream, Ps...), const stream& where, [[maybe_unused]] const argument* arguments,
                     std::index_sequence<I...>)
    {
        f(where, taken<Ps>::get(arguments[I])...);
    }
};

/// Adds a function to the plug-in's table when the plug-in is loaded.
class registration {
public:
    template <class... Ps>
    registration(const char* name, void (*f)(stream, Ps...), std::uint32_t version) noexcept
        : function_{name,
                    reinterpret_cast<void (*)()>(f),
                    &caller<Ps...>::call,
                    caller<Ps...>::parameters,
                    static_cast<std::uint32_t>(sizeof...(Ps)),
                    own_table().first,
                    version}
    {
        own_table().first = &function_;
    }
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;

private:
    function function_;
};

} // namespace coaccel::plugin::detail
#pragma GCC visibility pop

/// The symbol that coaccel looks up in the shared object. Weak, because every file of the plug-in may define it.
extern "C" __attribute__((weak, used, visibility("default"))) const coaccel::plugin::table* coaccel_plugin_v1()
{
    return &coaccel::plugin::detail::own_table();
}

#define COACCEL_PLUGIN_JOIN_2(a, b) a##b
#define COACCEL_PLUGIN_JOIN(a, b) COACCEL_PLUGIN_JOIN_2(a, b)

/// Exports a function `void f(coaccel::plugin::stream, ...)` under another name and with a version.
#define COACCEL_PLUGIN_FUNCTION_VERSION_AS(name, f, version)                                                           \
    static_assert((version) >= 1, "the versions of a function begin with 1");                                          \
    static const ::coaccel::plugin::detail::registration COACCEL_PLUGIN_JOIN(coaccel_plugin_, __COUNTER__)(name, f,    \
                                                                                                           version);

/// Exports version 1 of a function `void f(coaccel::plugin::stream, ...)` under another name.
#define COACCEL_PLUGIN_FUNCTION_AS(name, f) COACCEL_PLUGIN_FUNCTION_VERSION_AS(name, f, 1)

/// Exports a function `void f(coaccel::plugin::stream, ...)` under its own name. Its further parameters are buffers
/// (std::span or pointers, to const when it only reads them) and trivially copyable values; an exception fails the
/// call.
///
/// `version` is at least 1. Raise it when the same arguments get another meaning: calls and plans that state the
/// version for which they were written are then refused.
#define COACCEL_PLUGIN_FUNCTION_VERSION(f, version) COACCEL_PLUGIN_FUNCTION_VERSION_AS(#f, f, version)

/// As COACCEL_PLUGIN_FUNCTION_VERSION, with version 1.
#define COACCEL_PLUGIN_FUNCTION(f) COACCEL_PLUGIN_FUNCTION_VERSION_AS(#f, f, 1)

#endif
