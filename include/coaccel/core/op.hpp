#ifndef COACCEL_CORE_OP_HPP
#define COACCEL_CORE_OP_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/core/operand.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel {

/// The library an op belongs to; lane_policy::per_library gives each its own lane. `user` is the library of
/// async_submit, of plugin::call and of the ops in `interop`, `plan` that of the runs of plans.
enum class library : std::uint8_t { memory, blas, user, jit, rand, plan, prim };

/// The number of libraries.
inline constexpr std::size_t library_count = static_cast<std::size_t>(library::prim) + 1;

/// What a device has to know about an op, apart from its operands.
enum class op_role : std::uint8_t {
    compute,  ///< It computes, or does something else that concerns only the backend.
    allocate, ///< It allocates a buffer.
    write,    ///< It copies host memory to a buffer.
    read,     ///< It copies a buffer to host memory.
    download, ///< It copies a buffer to host memory that is allocated for it.
    adopt,    ///< It makes a buffer over memory that other code has allocated.
    wait,     ///< It waits for an event of other code.
    record,   ///< It records an event for other code, and completes as soon as it is on its stream.
};

/// Whether an op with this role makes a buffer. Such an op completes without running on a stream.
constexpr bool makes_buffer(op_role r) noexcept
{
    return r == op_role::allocate || r == op_role::adopt;
}

/// Why an op cannot be part of a CUDA graph, which is made once and runs any number of times.
enum class capture_obstacle : std::uint8_t {
    none,         ///< It can be part of a graph.
    reply,        ///< Its reply is copied to host memory that belongs to one run.
    state,        ///< It uses a state of the host: a graph would do the same in each run.
    host_work,    ///< It is not only work on a stream.
    unknown_code, ///< It calls a function about which the library knows nothing.
};

/// The reason as text, such as "its reply belongs to one run"; "unknown" for a value that is not a capture_obstacle.
COACCEL_DECL std::string_view to_string(capture_obstacle o) noexcept;

struct op_info;

namespace detail {

/// An op type describes its fields with Boost.Describe or, if they have no names, with its own function.
template <class Op>
concept describes_itself =
    boost::describe::has_describe_members<Op>::value || requires(op_info& info) { Op::describe(info); };

} // namespace detail

/// An operation: trivially copyable data with a name, a reply type, described fields and a check.
///
/// Trivially copyable because it is copied with memcpy into queues and into messages to workers, and because g++ 12
/// destroys non-trivial aggregates twice inside a co_await expression.
template <class Op>
concept op = std::is_trivially_copyable_v<Op> && detail::describes_itself<Op> && requires(const Op& o) {
    typename Op::reply;
    { Op::name } -> std::convertible_to<std::string_view>;
    { Op::lib } -> std::convertible_to<library>;
    { o.check() } -> std::same_as<error_code>;
};

/// Everything of an op struct that every op has: `reply`, `name`, `lib` and the description of its fields. It follows
/// the fields:
///
///     template <real T>
///     struct scal {
///         using value_type = T;
///         inout<T> x;
///         std::uint64_t n = 0;
///         error_code check() const noexcept;
///         COACCEL_OP(blas, scal, void, x, n)
///     };
///
/// Optional members of an op:
/// - `value_type`: the element type, which becomes part of the name.
/// - `source_type`: for an op that converts elements, the type that it reads. The name then has both.
/// - `second_type`: the type of another operand that it reads, which becomes part of the name if it differs.
/// - `static constexpr bool pure`: see COACCEL_PURE_OP, which sets it.
/// - `static constexpr bool may_overlap`: operands may overlap, and `check` decides how. Without it, an operand that is
///   written must not overlap another one.
/// - `bool overwrites() const noexcept`: with these fields, the op writes every element of its inout operands and reads
///   none of them, as a product whose beta is zero.
/// - `bool accepts(const reply&) const noexcept`: whether a reply from another process is valid.
/// - `std::uint64_t host_bytes() const noexcept`: bytes of the caller's memory that it copies.
/// - `static constexpr bool uses_callers_memory`: the device accesses memory of the caller until the op ends.
/// - `std::uint64_t state() const noexcept`: identifies a state in the context that the op uses and changes, within its
///   library. Ops with the same state run in the order in which they were started.
/// - `static constexpr bool storable_reply`: store_reply is implemented for it.
/// - `static constexpr std::array<std::string_view, N> scalars`: the fields that can be parameters of a plan. The
/// library
///   can read them from device memory.
/// - `std::uint64_t work() const noexcept`: distinguishes ops with equal operand sizes that take different times.
/// - `std::shared_ptr<const void> keep() const`: an object that must live until the op ends.
/// - `static constexpr op_role role`: what the device has to know about it; `compute` without it.
/// - `static constexpr capture_obstacle obstacle`, or `capture_obstacle obstacle() const noexcept` if it depends on the
///   fields: why the op cannot be part of a CUDA graph. Without it: `host_work` for a role other than `compute`,
///   `state` for an op with `state()`, `reply` for an op with a reply, `none` for all others.
#define COACCEL_OP(library_, op_, reply_, ...)                                                                         \
    using reply = reply_;                                                                                              \
    static constexpr std::string_view name = #library_ "." #op_;                                                       \
    static constexpr ::coaccel::library lib = ::coaccel::library::library_;                                            \
    BOOST_DESCRIBE_CLASS(op_, (), (__VA_ARGS__), (), ())

/// As COACCEL_OP, for an op whose effect depends only on its fields and operands, and which changes only operands. Such
/// an op may be started before ops with which it shares no elements.
#define COACCEL_PURE_OP(library_, op_, reply_, ...)                                                                    \
    static constexpr bool pure = true;                                                                                 \
    COACCEL_OP(library_, op_, reply_, __VA_ARGS__)

/// One described field of an op.
struct op_field {
    /// The kinds of fields.
    enum class kind : std::uint8_t { value, operand };

    /// What the bytes of a value are.
    enum class content : std::uint8_t {
        bytes,       ///< Anything else, such as a structure.
        number,      ///< A number of the type `type`.
        boolean,     ///< A bool.
        enumeration, ///< An enumerator, stored as a number of the type `type`.
        generator,   ///< A rand::generator.
    };

    /// How a value can be a parameter of a plan.
    enum class parameter : std::uint8_t {
        never,    ///< It cannot.
        by_value, ///< Each run passes its value.
        /// A GPU reads it from device memory. It then reads all such fields of the op from there.
        by_address,
    };

    std::string_view name{};               ///< Its name in the struct; that of an operand in a list is such as "a[3]".
    std::uint32_t offset = 0;              ///< In the struct, in bytes.
    std::uint16_t size = 0;                ///< In bytes.
    kind what = kind::value;               ///< A value or an operand.
    access mode = access::read;            ///< For an operand: how it is used.
    dtype type = dtype::u8;                ///< For an operand: its element type.
    content holds = content::bytes;        ///< For a value: what its bytes are.
    parameter variable = parameter::never; ///< For a value: how it can be a parameter.
    bool optional = false;                 ///< For an operand: it need not have a buffer.
    /// For an enumeration described with Boost.Describe: the name of the enumerator, null for another value.
    const char* (*enumerator)(const void* value) noexcept = nullptr;
    /// For a structure that has a readable form: this form.
    std::string (*text)(const void* value) = nullptr;
};

/// Everything the library knows about an op type, derived once from its description.
struct op_info {
    std::string name;                ///< With the element type, such as "blas.gemm<f32>".
    std::uint64_t id = 0;            ///< A hash of name and layout.
    std::uint32_t size = 0;          ///< The size of the op in bytes.
    std::uint32_t reply_size = 0;    ///< The size of the reply in bytes.
    library lib = library::memory;   ///< The library it belongs to.
    op_role role = op_role::compute; ///< What it does.
    bool pure = false;               ///< Whether it depends on, and changes, only its fields and operands.
    bool may_overlap = false;        ///< Whether operands may overlap; `check` decides how.
    /// Why ops of this type cannot be part of a CUDA graph, unless `obstacle_of` is given. The value for a description
    /// that is not made by info_of is the cautious one.
    capture_obstacle obstacle = capture_obstacle::unknown_code;
    std::vector<op_field> fields;               ///< All fields.
    std::vector<op_field> operands;             ///< The fields that are buffers.
    error_code (*check)(const void*) = nullptr; ///< Calls `check` of the op.
    /// Calls `overwrites` of the op; null: it reads its inout operands.
    bool (*overwrites)(const void* op) noexcept = nullptr;
    /// Whether a reply from another process is valid for this op; null: every reply is.
    bool (*accepts)(const void* op, const void* reply) = nullptr;
    /// Calls `state` of the op; null: it has none.
    std::uint64_t (*state)(const void* op) noexcept = nullptr;
    /// Calls `work` of the op; null: the sizes of its operands tell how long it takes.
    std::uint64_t (*work)(const void* op) noexcept = nullptr;
    /// Calls `obstacle` of the op; null: it does not depend on the fields.
    capture_obstacle (*obstacle_of)(const void* op) noexcept = nullptr;

    /// Why this op cannot be part of a CUDA graph.
    capture_obstacle find_obstacle(const void* op) const noexcept { return obstacle_of ? obstacle_of(op) : obstacle; }
};

namespace detail {

// FNV-1a. An op's ID is a hash of its name and layout, so that two builds that disagree about either do not misread
// each other's ops.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ull) noexcept
{
    for (const char c : text)
        seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return seed;
}

/// The number of buffers that an op names.
template <class Op>
constexpr std::size_t count_operands()
{
    if constexpr (requires { Op::operand_count; })
        return Op::operand_count;
    else
        return []<class... Members>(boost::mp11::mp_list<Members...>) {
            return (operands_in<std::remove_cvref_t<decltype(std::declval<Op>().*Members::pointer)>> + ... + 0);
        }(boost::mp11::mp_rename<boost::describe::describe_members<Op, boost::describe::mod_public>,
                                 boost::mp11::mp_list>());
}

/// Whether an operand with this ref has no buffer.
constexpr bool has_none(const op_field& operand, const any_ref& r) noexcept
{
    return operand.optional && r.is_none();
}

/// What the bytes of a value of type F are. Specialized for classes with a meaning of their own.
template <class F>
inline constexpr op_field::content content_of = std::is_same_v<F, bool>               ? op_field::content::boolean
                                                : std::is_enum_v<F>                   ? op_field::content::enumeration
                                                : std::is_integral_v<F> || element<F> ? op_field::content::number
                                                                                      : op_field::content::bytes;

/// The dtype of a number. Integers that are no elements, such as long long, have that of the same size.
template <class F>
consteval dtype number_type()
{
    if constexpr (std::is_enum_v<F>)
        return number_type<std::underlying_type_t<F>>();
    else if constexpr (element<F>)
        return dtype_v<F>;
    else if constexpr (std::is_integral_v<F>)
        return sizeof(F) == 1   ? (std::is_signed_v<F> ? dtype::i8 : dtype::u8)
               : sizeof(F) == 2 ? (std::is_signed_v<F> ? dtype::i16 : dtype::u16)
               : sizeof(F) == 4 ? (std::is_signed_v<F> ? dtype::i32 : dtype::u32)
                                : (std::is_signed_v<F> ? dtype::i64 : dtype::u64);
    else
        return dtype::u8;
}

/// As op_field::text, for a field of type F. Specialized for classes that have a readable form.
template <class F>
inline constexpr std::string (*structure_text)(const void*) = nullptr;

/// Such as "[2, 3]".
COACCEL_DECL std::string numbers_text(std::span<const std::uint64_t> numbers);

template <std::size_t N>
inline constexpr std::string (*structure_text<std::array<std::uint64_t, N>>)(const void*) =
    [](const void* value) { return numbers_text(*static_cast<const std::array<std::uint64_t, N>*>(value)); };

/// Describes a field that is not an operand.
template <class F>
constexpr void describe_value(op_field& field) noexcept
{
    field.what = op_field::kind::value;
    field.holds = content_of<F>;
    field.type = number_type<F>();
    field.text = structure_text<F>;
    if constexpr (boost::describe::has_describe_enumerators<F>::value)
        field.enumerator = [](const void* value) noexcept {
            return boost::describe::enum_to_string(*static_cast<const F*>(value), nullptr);
        };
}

/// A field, and where it is in a sample of its op.
struct placed_field {
    op_field field{};
    const void* place = nullptr;
};

/// The description of an op type as constants. An op type adds only these to a program, because there are hundreds of
/// them; make_info, which is compiled once, does the rest.
struct op_constants {
    std::string_view name;
    std::size_t type_count = 0; ///< How many element types are part of the name.
    dtype value_type = dtype::u8;
    dtype source_type = dtype::u8;
    dtype second_type = dtype::u8;
    std::uint32_t size = 0;
    std::uint32_t reply_size = 0;
    library lib = library::memory;
    op_role role = op_role::compute;
    bool pure = false;
    bool may_overlap = false;
    capture_obstacle obstacle = capture_obstacle::none;
    error_code (*check)(const void*) = nullptr;
    bool (*overwrites)(const void*) noexcept = nullptr;
    bool (*accepts)(const void*, const void*) = nullptr;
    std::uint64_t (*state)(const void*) noexcept = nullptr;
    std::uint64_t (*work)(const void*) noexcept = nullptr;
    capture_obstacle (*obstacle_of)(const void*) noexcept = nullptr;
    const void* sample = nullptr;
    std::span<const placed_field> fields{};
    std::span<const std::string_view> scalars{};
    /// The op's own function. Null: `fields` has all fields.
    void (*describe)(op_info&) = nullptr;
};

/// Exceptions: std::bad_alloc.
COACCEL_DECL op_info make_info(const op_constants& constants);

template <class Op>
inline const Op sample_of{};

template <class Operand>
constexpr op_field describe_operand(std::string_view name) noexcept
{
    op_field field{
        name, 0, sizeof(Operand), op_field::kind::operand, Operand::mode, dtype_v<typename Operand::value_type>};
    field.optional = is_optional<Operand>;
    return field;
}

/// The names of the operands in a list: "a[0]", "a[1]", and so on.
template <class Member, std::size_t N>
struct element_names {
    static_assert(N <= 100);
    static constexpr std::string_view list = Member::name;
    static constexpr std::size_t room = list.size() + 4;

    static constexpr auto texts = [] {
        std::array<std::array<char, room>, N> made{};
        for (std::size_t i = 0; i < N; ++i) {
            std::size_t at = 0;
            for (const char c : list)
                made[i][at++] = c;
            made[i][at++] = '[';
            if (i >= 10)
                made[i][at++] = static_cast<char>('0' + i / 10);
            made[i][at++] = static_cast<char>('0' + i % 10);
            made[i][at++] = ']';
        }
        return made;
    }();

    static constexpr std::string_view of(std::size_t i) noexcept { return {texts[i].data(), room - (i < 10 ? 1 : 0)}; }
};

template <class Op, class Member>
constexpr auto place_fields() noexcept
{
    using field_type = std::remove_cvref_t<decltype(std::declval<Op>().*Member::pointer)>;
    constexpr auto* const place = &(sample_of<Op>.*Member::pointer);
    if constexpr (is_operand<field_type>) {
        return std::array<placed_field, 1>{{{describe_operand<field_type>(Member::name), place}}};
    } else if constexpr (constexpr std::size_t count = operands_in<field_type>; count > 0) {
        std::array<placed_field, count> made{};
        for (std::size_t i = 0; i < count; ++i)
            made[i] = {describe_operand<typename field_type::value_type>(element_names<Member, count>::of(i)),
                       place->data() + i};
        return made;
    } else {
        static_assert(!has_operands<field_type>, "a list of operands is a std::array with one dimension");
        op_field field{Member::name, 0, static_cast<std::uint16_t>(sizeof(field_type)), op_field::kind::value};
        describe_value<field_type>(field);
        return std::array<placed_field, 1>{{{field, place}}};
    }
}

template <class Op>
inline constexpr auto fields_of = []<class... Members>(boost::mp11::mp_list<Members...>) {
    std::array<placed_field, (place_fields<Op, Members>().size() + ... + 0)> made{};
    [[maybe_unused]] std::size_t at = 0;
    [[maybe_unused]] const auto add = [&](const auto& fields) {
        for (const placed_field& f : fields)
            made[at++] = f;
    };
    (add(place_fields<Op, Members>()), ...);
    return made;
}(boost::mp11::mp_rename<boost::describe::describe_members<Op, boost::describe::mod_public>, boost::mp11::mp_list>());

/// The obstacle of an op type, if it does not depend on the fields.
template <class Op>
consteval capture_obstacle obstacle_of_type() noexcept
{
    if constexpr (requires { capture_obstacle(Op::obstacle); })
        return Op::obstacle;
    else if constexpr (requires { requires Op::role != op_role::compute; })
        return capture_obstacle::host_work;
    else if constexpr (requires(const Op& o) { o.state(); })
        return capture_obstacle::state;
    else
        return std::is_void_v<typename Op::reply> ? capture_obstacle::none : capture_obstacle::reply;
}

template <class Op>
constexpr op_constants make_constants() noexcept
{
    op_constants made{.name = Op::name, .size = sizeof(Op), .lib = Op::lib};
    if constexpr (requires { typename Op::value_type; }) {
        made.type_count = 1;
        made.value_type = dtype_v<typename Op::value_type>;
        if constexpr (requires { typename Op::source_type; }) {
            made.type_count = 2;
            made.source_type = dtype_v<typename Op::source_type>;
            if constexpr (requires { requires !std::same_as<typename Op::second_type, typename Op::source_type>; }) {
                made.type_count = 3;
                made.second_type = dtype_v<typename Op::second_type>;
            }
        }
    }
    if constexpr (!std::is_void_v<typename Op::reply>) {
        static_assert(std::is_trivially_copyable_v<typename Op::reply>, "an op's reply is plain data");
        made.reply_size = sizeof(typename Op::reply);
        if constexpr (requires(const Op& o, const typename Op::reply& r) { o.accepts(r); })
            made.accepts = [](const void* op, const void* reply) -> bool {
                return static_cast<const Op*>(op)->accepts(*static_cast<const typename Op::reply*>(reply));
            };
    }
    if constexpr (requires { Op::role; })
        made.role = Op::role;
    if constexpr (requires { Op::pure; })
        made.pure = Op::pure;
    if constexpr (requires { Op::may_overlap; })
        made.may_overlap = Op::may_overlap;
    if constexpr (requires(const Op& o) { o.obstacle(); })
        made.obstacle_of = [](const void* op) noexcept { return static_cast<const Op*>(op)->obstacle(); };
    else
        made.obstacle = obstacle_of_type<Op>();
    if constexpr (requires(const Op& o) { o.overwrites(); })
        made.overwrites = [](const void* op) noexcept -> bool { return static_cast<const Op*>(op)->overwrites(); };
    if constexpr (requires(const Op& o) { o.state(); })
        made.state = [](const void* op) noexcept { return static_cast<const Op*>(op)->state(); };
    if constexpr (requires(const Op& o) { o.work(); })
        made.work = [](const void* op) noexcept { return static_cast<const Op*>(op)->work(); };
    made.check = [](const void* op) { return static_cast<const Op*>(op)->check(); };

    if constexpr (requires(op_info& info) { Op::describe(info); })
        made.describe = [](op_info& info) { Op::describe(info); };
    else {
        made.sample = &sample_of<Op>;
        made.fields = fields_of<Op>;
        if constexpr (requires { Op::scalars; })
            made.scalars = Op::scalars;
    }
    return made;
}

template <class Op>
inline constexpr op_constants constants_of = make_constants<Op>();

} // namespace detail

/// The description of Op, made on first use.
///
/// Exceptions: std::bad_alloc on first use; the next call tries again.
template <op Op>
const op_info& info_of()
{
    static const op_info info = detail::make_info(detail::constants_of<Op>);
    return info;
}

/// Where a GPU reads a field of an op that is a parameter of a plan.
struct scalar_address {
    std::size_t offset = 0;        ///< Of the field in the op, in bytes.
    const void* address = nullptr; ///< In device memory.
};

/// An op on its way to a backend: its data, and the addresses of its operands and reply.
struct bound_op {
    const op_info* info = nullptr; ///< The description of the op.
    const void* op = nullptr;      ///< The op itself.
    void* reply = nullptr;         ///< The address for its reply.
    /// Set by the backend: the op's own outcome.
    error_code status{};
    const void* code = nullptr; ///< Set by the backend: its implementation of the op.
    void* state = nullptr;      ///< Resources of the backend until the op has finished.
    void** operands = nullptr;  ///< The addresses of its operands: as many as `info` lists. Null: it has no buffer.
    /// For an op with parameters that are read from device memory: all fields of this kind.
    std::span<const scalar_address> scalars{};

    /// The op, cast to its type.
    template <class Op>
    const Op& as() const noexcept
    {
        return *static_cast<const Op*>(op);
    }

    /// The memory behind one operand of this op.
    template <element T>
    const T* data(const in<T>& field) const noexcept
    {
        return static_cast<const T*>(address(&field));
    }

    /// The memory behind one operand of this op; null: it has none.
    template <element T>
    const T* data(const optional_in<T>& field) const noexcept
    {
        return static_cast<const T*>(address(&field));
    }

    /// The memory behind one operand of this op; null: it has none.
    template <element T>
    T* data(const optional_out<T>& field) const noexcept
    {
        return static_cast<T*>(address(&field));
    }

    /// The memory behind one operand of this op.
    template <element T>
    T* data(const out<T>& field) const noexcept
    {
        return static_cast<T*>(address(&field));
    }

    /// The memory behind one operand of this op.
    template <element T>
    T* data(const inout<T>& field) const noexcept
    {
        return static_cast<T*>(address(&field));
    }

    /// The memory behind one operand of this op; null: it has none.
    template <element T>
    T* data(const optional_inout<T>& field) const noexcept
    {
        return static_cast<T*>(address(&field));
    }

private:
    void* address(const void* field) const noexcept
    {
        const auto offset = static_cast<const char*>(field) - static_cast<const char*>(op);
        std::size_t i = 0;
        while (info->operands[i].offset != offset)
            ++i;
        return operands[i];
    }
};

/// The native stream an op runs on. With "cuda" the handle is a CUstream. With "host" there is none; a function given
/// to async_submit does its work itself, in stream order.
struct native_stream {
    std::string_view backend; ///< The name of the backend.
    void* handle = nullptr;   ///< The backend's stream handle.
};

} // namespace coaccel

#endif
