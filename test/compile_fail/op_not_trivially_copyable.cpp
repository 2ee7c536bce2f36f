// An op must be trivially copyable, because it is transferred with memcpy.
// expect: constraint
// expect: is_trivially_copyable_v<Op>|is_trivially_copyable_v<named>
#include <coaccel/core/op.hpp>

struct named {
    using reply = void;
    static constexpr std::string_view name = "test.named";
    static constexpr coaccel::library lib = coaccel::library::user;

    std::string text;

    coaccel::error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(named, (), (text), (), ())
};

const auto& info = coaccel::info_of<named>();
