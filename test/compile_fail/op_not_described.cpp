// An op must describe its fields.
// expect: constraint
// expect: has_describe_members<Op>|has_describe_members<silent>
#include <coaccel/core/op.hpp>

struct silent {
    using reply = void;
    static constexpr std::string_view name = "test.silent";
    static constexpr coaccel::library lib = coaccel::library::user;

    int number = 0;

    coaccel::error_code check() const noexcept { return {}; }
};

const auto& info = coaccel::info_of<silent>();
