#ifndef COACCEL_CUDA_BLAS_BLAS_OPS_HPP
#define COACCEL_CUDA_BLAS_BLAS_OPS_HPP

#include "cuda/backend.hpp"
#include "cuda/blas/blas_handle.hpp"

#include <coaccel/ops/blas.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

// Shared by the ops of all levels.
namespace coaccel::cuda {

/// Selects the cuBLAS function for T.
template <class T, class Single, class Double>
constexpr auto pick(Single single, Double double_) noexcept
{
    if constexpr (std::same_as<blas::real_part<T>, float>)
        return single;
    else
        return double_;
}

template <blas::dense_element T, class Single, class Double, class Complex, class DoubleComplex>
constexpr auto pick(Single single, Double double_, Complex complex, DoubleComplex double_complex) noexcept
{
    if constexpr (blas::complex_element<T>)
        return pick<T>(complex, double_complex);
    else
        return pick<T>(single, double_);
}

/// The function of an operation in a cublas_api, such as `symm`, that has a form for each type of dense_element.
#define COACCEL_CUBLAS_PICK(api, T, operation)                                                                         \
    pick<T>((api).cublasS##operation##_64, (api).cublasD##operation##_64, (api).cublasC##operation##_64,               \
            (api).cublasZ##operation##_64)

/// The function of an operation, such as `getrfBatched`, that has no form with 64-bit sizes.
#define COACCEL_CUBLAS_PICK_INT(api, T, operation)                                                                     \
    pick<T>((api).cublasS##operation, (api).cublasD##operation, (api).cublasC##operation, (api).cublasZ##operation)

/// The function of an operation, such as `hemm`, that has a form for each type of complex_element.
#define COACCEL_CUBLAS_PICK_COMPLEX(api, T, operation)                                                                 \
    pick<T>((api).cublasC##operation##_64, (api).cublasZ##operation##_64)

constexpr std::int64_t size(std::uint64_t n) noexcept
{
    return static_cast<std::int64_t>(n);
}

// The increment of a single element and the leading dimension of a single column have no meaning and may exceed any
// memory. cuBLAS gets harmless values instead.
constexpr std::int64_t increment(std::uint64_t n, std::int64_t inc) noexcept
{
    return n == 1 ? 1 : inc;
}

/// For cuBLAS functions that do nothing if the increment is negative.
constexpr std::int64_t distance(std::uint64_t n, std::int64_t inc) noexcept
{
    return n == 1 ? 1 : size(coaccel::detail::step_of(inc));
}

constexpr std::int64_t leading(std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) noexcept
{
    return size(ld == 0 || cols == 1 ? rows : ld);
}

/// With real elements, the conjugate transpose is the transpose.
template <class T>
constexpr cublasOperation_t operation(blas::transpose t) noexcept
{
    if (t == blas::transpose::no)
        return CUBLAS_OP_N;
    return t == blas::transpose::conjugate && blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
}

constexpr cublasFillMode_t native(blas::uplo u) noexcept
{
    return u == blas::uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}

constexpr cublasDiagType_t native(blas::diag d) noexcept
{
    return d == blas::diag::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

constexpr cublasSideMode_t native(blas::side s) noexcept
{
    return s == blas::side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}

/// The element type of cuBLAS with the layout of T.
template <class T>
struct native_element {
    using type = T;
};

template <>
struct native_element<std::complex<float>> {
    using type = cuComplex;
};

template <>
struct native_element<std::complex<double>> {
    using type = cuDoubleComplex;
};

template <>
struct native_element<half> {
    using type = __half;
};

template <>
struct native_element<bfloat16> {
    using type = __nv_bfloat16;
};

template <class T>
auto native(const T* p) noexcept
{
    return reinterpret_cast<const typename native_element<T>::type*>(p);
}

template <class T>
auto native(T* p) noexcept
{
    return reinterpret_cast<typename native_element<T>::type*>(p);
}

/// The element type of cuBLAS.
template <class T>
constexpr cudaDataType_t data_type() noexcept
{
    if constexpr (std::same_as<T, float>)
        return CUDA_R_32F;
    else if constexpr (std::same_as<T, double>)
        return CUDA_R_64F;
    else if constexpr (std::same_as<T, std::complex<float>>)
        return CUDA_C_32F;
    else if constexpr (std::same_as<T, std::complex<double>>)
        return CUDA_C_64F;
    else if constexpr (std::same_as<T, half>)
        return CUDA_R_16F;
    else if constexpr (std::same_as<T, bfloat16>)
        return CUDA_R_16BF;
    else if constexpr (std::same_as<T, float8_e4m3>)
        return CUDA_R_8F_E4M3;
    else if constexpr (std::same_as<T, float8_e5m2>)
        return CUDA_R_8F_E5M2;
    else if constexpr (std::same_as<T, std::int8_t>)
        return CUDA_R_8I;
    else {
        static_assert(std::same_as<T, std::int32_t>);
        return CUDA_R_32I;
    }
}

/// How cuBLAS computes products of matrices of this type.
template <class T>
constexpr cublasComputeType_t compute_type(blas::math m) noexcept
{
    if constexpr (std::same_as<T, double> || std::same_as<T, std::complex<double>>)
        return m == blas::math::pedantic ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F;
    if constexpr (std::same_as<T, std::int8_t>)
        return m == blas::math::pedantic ? CUBLAS_COMPUTE_32I_PEDANTIC : CUBLAS_COMPUTE_32I;
    if (m == blas::math::pedantic)
        return CUBLAS_COMPUTE_32F_PEDANTIC;
    return blas::dense_element<T> && m == blas::math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// A number for call_needs::kernels.
template <class... Parts>
constexpr std::uint64_t kernels(Parts... parts) noexcept
{
    std::uint64_t key = 0xcbf29ce484222325ull;
    ((key = (key ^ static_cast<std::uint64_t>(parts)) * 0x100000001b3ull), ...);
    return key;
}

/// cuBLAS chooses kernels by size: numbers with the same magnitude are likely to use the same ones.
constexpr int magnitude(std::uint64_t n) noexcept
{
    return std::bit_width(n);
}

/// For functions whose kernels are for sizes up to and including powers of two.
constexpr int inclusive_magnitude(std::uint64_t n) noexcept
{
    return std::bit_width(n - 1);
}

/// About the most launches for triangular equations. cuBLAS divides the matrix into blocks of 64 rows and a batch into
/// parts of 65535 matrices. For each of them it launches the solution of the block, a product, and kernels that compute
/// addresses.
constexpr std::size_t triangular_launches(std::uint64_t order, std::uint64_t batch) noexcept
{
    return 4 * ((order - 1) / 64 + 1) * ((batch - 1) / 65535 + 1);
}

/// The alignment of a leading dimension, as far as it matters to the choice of kernels.
constexpr std::uint64_t alignment(std::uint64_t ld, std::uint64_t rows) noexcept
{
    const std::uint64_t step = ld != 0 ? ld : rows;
    return step & -step & 31;
}

/// cuBLAS gets harmless strides for a single matrix or vector, whose stride has no meaning and may exceed any memory.
constexpr std::int64_t batch_stride(std::uint64_t batch, std::uint64_t stride) noexcept
{
    return batch == 1 ? 0 : size(stride);
}

// For the functions with 32-bit sizes; the check of their ops refuses larger ones.
constexpr int int_size(std::uint64_t n) noexcept
{
    return static_cast<int>(n);
}

constexpr int int_leading(std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) noexcept
{
    return static_cast<int>(leading(rows, cols, ld));
}

/// The addresses of a batch of matrices. The stride of a single one has no meaning.
template <class T>
address_sequence addresses(const T* first, std::uint64_t batch, std::uint64_t stride) noexcept
{
    return {reinterpret_cast<CUdeviceptr>(first), batch == 1 ? 0 : stride * sizeof(T)};
}

/// Fills the tables and calls `call` with each of them, as cuBLAS takes them.
template <class T, class Call>
cublasStatus_t with_tables(const blas_call& c, std::initializer_list<address_sequence> from, std::uint64_t batch,
                           const Call& call)
{
    using element = typename native_element<T>::type;
    auto* const tables = c.tables.fill(from, batch);
    // The error is that of the tables.
    if (!tables)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    auto* const first = reinterpret_cast<element* const*>(tables);
    return call(first, first + batch);
}

/// A status of cuBLAS, for functions that also return the number of a wrong argument.
constexpr cublasStatus_t status_of(cublasStatus_t status, int wrong_argument) noexcept
{
    return status == CUBLAS_STATUS_SUCCESS && wrong_argument != 0 ? CUBLAS_STATUS_INVALID_VALUE : status;
}

template <class T>
constexpr bool is_zero(const T& factor) noexcept
{
    return factor == T(0);
}

/// The address of a factor for cuBLAS: in device memory if it is a parameter of a plan.
template <class T>
const T* factor(const bound_op& o, const T& field) noexcept
{
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const char*>(&field) - static_cast<const char*>(o.op));
    for (const scalar_address& s : o.scalars)
        if (s.offset == offset)
            return static_cast<const T*>(s.address);
    if constexpr (alignof(T) < sizeof(T)) {
        // cuBLAS expects a complex number at a multiple of its size, while an op has it at one of half its size. It
        // reads factors in the call, and no call has more than two.
        struct alignas(sizeof(T)) aligned {
            T value{};
        };
        thread_local std::array<aligned, 2> copies;
        thread_local std::size_t next = 0;
        T& copy = copies[next++ % copies.size()].value;
        copy = field;
        return &copy;
    }
    return &field;
}

/// A batch of matrices that a call writes.
template <class T>
struct written_matrices {
    T* first;
    std::uint64_t rows, cols;
    std::int64_t ld, stride;
    std::uint64_t batch;
};

/// The addresses of two factors, as `factor` returns them: beta may be a parameter of a plan while alpha is zero.
template <class T>
struct factor_addresses {
    const T* alpha;
    const T* beta;
};

/// C = beta * C. cuBLAS reads operands that are multiplied by zero, so that NaN in them would be in the result; for an
/// alpha of zero, a product over no elements takes the place of its functions. It reads C unless beta is zero.
template <class T>
cublasStatus_t scale(const blas_call& c, const factor_addresses<blas::scalar<T>>& by, const written_matrices<T>& m)
{
    constexpr auto type = data_type<T>();
    return c.api.cublasGemmStridedBatchedEx_64(c.handle, CUBLAS_OP_N, CUBLAS_OP_N, size(m.rows), size(m.cols), 0,
                                               by.alpha, m.first, type, size(m.rows), 0, m.first, type, 1, 0, by.beta,
                                               m.first, type, m.ld, m.stride, size(m.batch),
                                               compute_type<T>(blas::math::standard), CUBLAS_GEMM_DEFAULT);
}

/// The same for a vector, or a batch of them: each is a matrix of one row.
template <class T>
cublasStatus_t scale_vectors(const blas_call& c, const factor_addresses<blas::scalar<T>>& by, T* first, std::uint64_t n,
                             std::int64_t inc, std::uint64_t batch = 1, std::int64_t stride = 0)
{
    return scale<T>(c, by, {first, 1, n, distance(n, inc), stride, batch});
}

/// Makes a call whose factors and results are in device memory.
template <class Call>
cublasStatus_t with_device_pointers(const blas_call& c, const Call& call)
{
    auto status = c.api.cublasSetPointerMode(c.handle, CUBLAS_POINTER_MODE_DEVICE);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = call();
    const auto restored = c.api.cublasSetPointerMode(c.handle, CUBLAS_POINTER_MODE_HOST);
    return status == CUBLAS_STATUS_SUCCESS ? restored : status;
}

/// A copy of an op: after the context has died, the request may be destroyed before the thread pool runs the call.
template <class Op>
struct owned_op {
    Op op;
    bound_op bound;
    std::array<void*, coaccel::detail::count_operands<Op>()> addresses;
    /// No op has more factors.
    std::array<scalar_address, 2> scalars;
};

/// How an op of a level runs. `Level` has an overload for each op of
/// - `call_needs needs(const Op&)`, or `needs(const Op&, const bound_op&)` if they depend on addresses
/// - `cublasStatus_t launch(const blas_call&, const Op&, const bound_op&)`, which leaves the reply in blas_call::result
/// and, for ops with a reply, of
/// - `void finish(const Op&, reply&)`, which corrects the value that cuBLAS has computed.
template <class Level, class Op>
struct blas_code {
    static constexpr bool replies = !std::is_void_v<typename Op::reply>;
    static constexpr std::size_t reply_cell_bytes = 64;

    static cublasStatus_t launch(const blas_call& c, const Op& op, const bound_op& o)
    {
        if (o.scalars.empty())
            return Level::launch(c, op, o);
        return with_device_pointers(c, [&] { return Level::launch(c, op, o); });
    }

    static blas_handle& handle(backend& b, stream_state& s) { return s.resources.get<blas_handle>(b, s.native); }

    static call_needs needs_of(const bound_op& o)
    {
        if constexpr (requires { Level::needs(o.as<Op>(), o); })
            return Level::needs(o.as<Op>(), o);
        else
            return Level::needs(o.as<Op>());
    }

    static result<readiness> prepare(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        if constexpr (replies) {
            if (!o.state) {
                BOOST_OUTCOME_TRY(o.state, b.staging().try_allocate_own(reply_cell_bytes));
                if (!o.state)
                    return readiness::pending;
            }
        }
        const auto copy = [&]() -> blas_handle::call {
            auto own = std::make_shared<owned_op<Op>>(owned_op<Op>{op, o, {}, {}});
            std::copy_n(o.operands, own->addresses.size(), own->addresses.begin());
            own->bound.op = &own->op;
            own->bound.operands = own->addresses.data();
            own->bound.scalars = std::span(own->scalars).first(o.scalars.size());
            std::ranges::copy(o.scalars, own->scalars.begin());
            return [own](const blas_call& c) { return launch(c, own->op, own->bound); };
        };
        auto needs = needs_of(o);
        needs.kernels ^= o.info->id;
        // cuBLAS may choose others when it does not know the factors.
        if (!o.scalars.empty())
            needs.kernels = ~needs.kernels;
        BOOST_OUTCOME_TRY(const auto ready, handle(b, s).prepare(needs, copy));
        if (ready == readiness::launched)
            if (auto ec = fetch_reply(b, s, o))
                return ec;
        return ready;
    }

    static error_code enqueue(backend& b, stream_state& s, bound_op& o)
    {
        const auto ec = handle(b, s).launch([&](const blas_call& c) { return launch(c, o.as<Op>(), o); });
        return ec ? ec : fetch_reply(b, s, o);
    }

    static error_code fetch_reply(backend& b, stream_state& s, bound_op& o)
    {
        if constexpr (replies)
            return b.check(
                b.api().cuMemcpyDtoHAsync(o.state, handle(b, s).cell(), sizeof(typename Op::reply), s.native));
        return {};
    }

    // Scratch memory is filled by a further call; tables are filled by one launch and pivots by another; a reply is
    // copied.
    static std::size_t commands(const bound_op& o) noexcept
    {
        const auto needs = needs_of(o);
        return needs.launches + (needs.scratch != 0 ? 1 : 0) + (needs.addresses != 0 ? 1 : 0) +
               (needs.pivots != 0 ? 1 : 0) + (replies ? 1 : 0);
    }

    static error_code finish(backend& b, bound_op& o) noexcept
    {
        if constexpr (replies) {
            void* cell = std::exchange(o.state, nullptr);
            if (!cell)
                return {};
            if (o.reply) {
                auto& reply = *static_cast<typename Op::reply*>(o.reply);
                std::memcpy(&reply, cell, sizeof(reply));
                Level::finish(o.as<Op>(), reply);
            }
            b.staging().release(cell);
        }
        return {};
    }
};

/// A level whose launches leave the reply of an op in the op's own memory.
template <class Level>
struct storing {
    template <class Op>
    static call_needs needs(const stored_reply<Op>& op)
    {
        return Level::needs(op.op);
    }

    template <class Op>
    static cublasStatus_t launch(const blas_call& c, const stored_reply<Op>& op, const bound_op& o)
    {
        return Level::launch({c.api, c.handle, o.data(op.dst), c.scratch, c.tables}, op.op, o);
    }
};

template <class Level, op Op>
void add_op(op_table& table)
{
    table.add<Op>({.prepare = blas_code<Level, Op>::prepare,
                   .enqueue = blas_code<Level, Op>::enqueue,
                   .finish = blas_code<Level, Op>::finish,
                   .commands = blas_code<Level, Op>::commands});
    if constexpr (op_with_storable_reply<Op>)
        add_op<storing<Level>, stored_reply<Op>>(table);
}

template <class Level, op... Ops>
void add_ops(op_table& table, type_list<Ops...>)
{
    (add_op<Level, Ops>(table), ...);
}

void add_level1(op_table& table);
void add_level2(op_table& table);
void add_level2_batched(op_table& table);
void add_level2_symmetric(op_table& table);
void add_level2_triangular(op_table& table);
void add_level3(op_table& table);
void add_level3_elementwise(op_table& table);
void add_level3_lists(op_table& table);
void add_level3_symmetric(op_table& table);
void add_level3_triangular(op_table& table);
void add_matmul(op_table& table);
void add_lu_batched(op_table& table);
void add_qr_batched(op_table& table);

} // namespace coaccel::cuda

#endif
