//! The C functions of libisl that this crate calls.
//!
//! `kingpost-isl-sys` compiles and links it. Signatures follow isl 0.27's headers. In isl's words an
//! argument is *taken* (`__isl_take`: the callee frees it, also when it fails) or *kept*.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

// Without a mention in the source the linker would not see libisl.
use kingpost_isl_sys as _;

macro_rules! opaque {
    ($($name:ident),* $(,)?) => {
        $(#[repr(C)] pub struct $name { _private: [u8; 0] })*
    };
}

opaque!(
    isl_ctx,
    isl_id,
    isl_space,
    isl_mat,
    isl_val,
    isl_aff,
    isl_point,
    isl_basic_set,
    isl_set,
    isl_basic_set_list,
    isl_basic_map,
    isl_map,
    isl_map_list,
    isl_union_map,
    isl_union_set,
    isl_set_list,
    isl_schedule_constraints,
    isl_schedule,
    isl_schedule_node,
);

/// `enum isl_dim_type`.
pub type DimType = c_int;
pub const CST: DimType = 0;
pub const PARAM: DimType = 1;
pub const IN: DimType = 2;
pub const OUT: DimType = 3;
pub const SET: DimType = 3;
pub const DIV: DimType = 4;

/// `enum isl_schedule_node_type`.
pub const NODE_ERROR: c_int = -1;
pub const NODE_BAND: c_int = 0;
pub const NODE_LEAF: c_int = 6;
pub const NODE_SEQUENCE: c_int = 9;
pub const NODE_SET: c_int = 10;

/// `ISL_ON_ERROR_CONTINUE`: record the error in the context and return null.
pub const ON_ERROR_CONTINUE: c_int = 1;
/// `isl_error_quota`: the limit on operations was reached.
pub const ERROR_QUOTA: c_int = 6;

/// Declares `fn(taken) -> given` for several functions of one type.
macro_rules! unary {
    ($from:ty => $to:ty: $($name:ident),* $(,)?) => {
        unsafe extern "C" { $(pub fn $name(a: *mut $from) -> *mut $to;)* }
    };
}

/// Declares `fn(taken, taken) -> given` for several functions of one type.
macro_rules! binary {
    ($a:ty, $b:ty => $to:ty: $($name:ident),* $(,)?) => {
        unsafe extern "C" { $(pub fn $name(a: *mut $a, b: *mut $b) -> *mut $to;)* }
    };
}

/// Declares `fn(kept) -> isl_bool`.
macro_rules! test {
    ($a:ty: $($name:ident),* $(,)?) => {
        unsafe extern "C" { $(pub fn $name(a: *mut $a) -> c_int;)* }
    };
}

/// Declares `fn(kept, kept) -> isl_bool`.
macro_rules! test2 {
    ($a:ty: $($name:ident),* $(,)?) => {
        unsafe extern "C" { $(pub fn $name(a: *mut $a, b: *mut $a) -> c_int;)* }
    };
}

/// Declares `fn(taken, type, first, n) -> given`.
macro_rules! range {
    ($a:ty: $($name:ident),* $(,)?) => {
        unsafe extern "C" {
            $(pub fn $name(a: *mut $a, kind: DimType, first: c_uint, n: c_uint) -> *mut $a;)*
        }
    };
}

/// Hands every type with the functions that copy and free it to a macro.
macro_rules! owned_types {
    ($receiver:ident) => {
        $receiver! {
            isl_id: isl_id_copy, isl_id_free;
            isl_space: isl_space_copy, isl_space_free;
            isl_mat: isl_mat_copy, isl_mat_free;
            isl_val: isl_val_copy, isl_val_free;
            isl_aff: isl_aff_copy, isl_aff_free;
            isl_point: isl_point_copy, isl_point_free;
            isl_basic_set: isl_basic_set_copy, isl_basic_set_free;
            isl_basic_map: isl_basic_map_copy, isl_basic_map_free;
            isl_set: isl_set_copy, isl_set_free;
            isl_map: isl_map_copy, isl_map_free;
            isl_basic_set_list: isl_basic_set_list_copy, isl_basic_set_list_free;
            isl_map_list: isl_map_list_copy, isl_map_list_free;
            isl_union_map: isl_union_map_copy, isl_union_map_free;
            isl_union_set: isl_union_set_copy, isl_union_set_free;
            isl_set_list: isl_set_list_copy, isl_set_list_free;
            isl_schedule_constraints: isl_schedule_constraints_copy, isl_schedule_constraints_free;
            isl_schedule: isl_schedule_copy, isl_schedule_free;
            isl_schedule_node: isl_schedule_node_copy, isl_schedule_node_free;
        }
    };
}
pub(crate) use owned_types;

/// Declares the copy (kept to given) and the free (taken) of a type.
macro_rules! owned {
    ($($t:ty: $copy:ident, $free:ident;)*) => {
        unsafe extern "C" { $(pub fn $copy(a: *mut $t) -> *mut $t; pub fn $free(a: *mut $t) -> *mut $t;)* }
    };
}

owned_types!(owned);

unary!(isl_set => isl_set:
    isl_set_coalesce, isl_set_remove_redundancies, isl_set_compute_divs, isl_set_make_disjoint,
    isl_set_lexmin, isl_set_lexmax, isl_set_complement, isl_set_params, isl_set_drop_unused_params,
    isl_set_detect_equalities, isl_set_flatten, isl_set_remove_unknown_divs);
unary!(isl_set => isl_basic_set: isl_set_simple_hull, isl_set_affine_hull);
unary!(isl_set => isl_point: isl_set_sample_point);
unary!(isl_set => isl_map: isl_map_from_range);
unary!(isl_set => isl_union_set: isl_union_set_from_set);
unary!(isl_union_set => isl_schedule_constraints: isl_schedule_constraints_on_domain);
unary!(isl_schedule_constraints => isl_schedule: isl_schedule_constraints_compute_schedule);
unary!(isl_basic_set => isl_set: isl_set_from_basic_set);
unary!(isl_basic_map => isl_map: isl_map_from_basic_map);
unary!(isl_map => isl_map:
    isl_map_coalesce, isl_map_remove_redundancies, isl_map_make_disjoint,
    isl_map_lexmin, isl_map_lexmax, isl_map_reverse, isl_map_detect_equalities);
unary!(isl_map => isl_basic_map: isl_map_simple_hull, isl_map_affine_hull);
unary!(isl_map => isl_set: isl_map_domain, isl_map_range, isl_map_wrap);
unary!(isl_map => isl_union_map: isl_union_map_from_map);
unary!(isl_space => isl_set: isl_set_universe, isl_set_empty);
unary!(isl_space => isl_map: isl_map_universe, isl_map_empty);
// These keep their argument.
unary!(isl_schedule => isl_schedule_node: isl_schedule_get_root);
unary!(isl_schedule_node => isl_union_map: isl_schedule_node_band_get_partial_schedule_union_map);
unary!(isl_schedule_node => isl_union_set: isl_schedule_node_filter_get_filter);
unary!(isl_union_set => isl_set_list: isl_union_set_get_set_list);
unary!(isl_set => isl_basic_set_list: isl_set_get_basic_set_list);
unary!(isl_union_map => isl_map_list: isl_union_map_get_map_list);
unary!(isl_set => isl_val: isl_set_count_val);
unary!(isl_aff => isl_val: isl_aff_get_constant_val, isl_aff_get_denominator_val);

binary!(isl_set, isl_set => isl_set:
    isl_set_intersect, isl_set_union, isl_set_subtract, isl_set_gist);
binary!(isl_set, isl_map => isl_set: isl_set_apply);
binary!(isl_map, isl_map => isl_map:
    isl_map_intersect, isl_map_union, isl_map_subtract, isl_map_gist, isl_map_apply_range,
    isl_map_apply_domain);
binary!(isl_map, isl_set => isl_map: isl_map_intersect_domain);
binary!(isl_union_map, isl_union_map => isl_union_map: isl_union_map_union);
binary!(isl_union_set, isl_union_set => isl_union_set: isl_union_set_union);
binary!(isl_schedule_constraints, isl_set => isl_schedule_constraints: isl_schedule_constraints_set_context);
binary!(isl_schedule_constraints, isl_union_map => isl_schedule_constraints:
    isl_schedule_constraints_set_validity, isl_schedule_constraints_set_coincidence,
    isl_schedule_constraints_set_proximity);

test!(isl_set: isl_set_is_empty, isl_set_is_bounded, isl_set_is_singleton, isl_set_is_wrapping);
test!(isl_map: isl_map_is_empty,
    isl_map_domain_is_wrapping, isl_map_range_is_wrapping);
test!(isl_point: isl_point_is_void);
test!(isl_val: isl_val_is_int);
test!(isl_mat: isl_mat_rows);
test!(isl_basic_set_list: isl_basic_set_list_size);
test!(isl_map_list: isl_map_list_size);
test!(isl_set_list: isl_set_list_size);
test!(isl_schedule_node: isl_schedule_node_get_type, isl_schedule_node_n_children,
    isl_schedule_node_band_n_member, isl_schedule_node_band_get_permutable);
test!(isl_ctx: isl_options_get_schedule_outer_coincidence, isl_options_get_schedule_serialize_sccs);
test2!(isl_set: isl_set_is_subset, isl_set_is_equal, isl_set_is_disjoint);
test2!(isl_map: isl_map_is_subset, isl_map_is_equal, isl_map_is_disjoint);

range!(isl_set: isl_set_project_out, isl_set_eliminate);
range!(isl_map: isl_map_project_out, isl_map_eliminate);

/// `isl_stat (*)(__isl_take isl_point *, void *user)`.
pub type PointCallback = unsafe extern "C" fn(*mut isl_point, *mut c_void) -> c_int;

unsafe extern "C" {
    pub fn free(memory: *mut c_void);

    pub fn isl_ctx_alloc() -> *mut isl_ctx;
    pub fn isl_ctx_free(ctx: *mut isl_ctx);
    pub fn isl_ctx_last_error(ctx: *mut isl_ctx) -> c_int;
    pub fn isl_ctx_last_error_msg(ctx: *mut isl_ctx) -> *const c_char;
    pub fn isl_ctx_reset_error(ctx: *mut isl_ctx);
    pub fn isl_ctx_set_max_operations(ctx: *mut isl_ctx, max: c_ulong);
    pub fn isl_ctx_get_max_operations(ctx: *mut isl_ctx) -> c_ulong;
    pub fn isl_ctx_reset_operations(ctx: *mut isl_ctx);
    // exported, in a header of isl's own
    pub fn isl_ctx_next_operation(ctx: *mut isl_ctx) -> c_int;
    pub fn isl_options_set_on_error(ctx: *mut isl_ctx, value: c_int) -> c_int;

    pub fn isl_id_alloc(ctx: *mut isl_ctx, name: *const c_char, user: *mut c_void) -> *mut isl_id;
    pub fn isl_id_get_name(id: *mut isl_id) -> *const c_char;

    pub fn isl_space_alloc(ctx: *mut isl_ctx, nparam: c_uint, n_in: c_uint, n_out: c_uint) -> *mut isl_space;
    pub fn isl_space_set_alloc(ctx: *mut isl_ctx, nparam: c_uint, dim: c_uint) -> *mut isl_space;
    pub fn isl_space_set_dim_id(
        space: *mut isl_space,
        kind: DimType,
        pos: c_uint,
        id: *mut isl_id,
    ) -> *mut isl_space;

    pub fn isl_mat_alloc(ctx: *mut isl_ctx, rows: c_uint, columns: c_uint) -> *mut isl_mat;
    pub fn isl_mat_set_element_si(mat: *mut isl_mat, row: c_int, column: c_int, value: c_int)
    -> *mut isl_mat;
    pub fn isl_mat_set_element_val(
        mat: *mut isl_mat,
        row: c_int,
        column: c_int,
        value: *mut isl_val,
    ) -> *mut isl_mat;
    pub fn isl_mat_get_element_val(mat: *mut isl_mat, row: c_int, column: c_int) -> *mut isl_val;

    pub fn isl_val_int_from_si(ctx: *mut isl_ctx, value: c_long) -> *mut isl_val;
    pub fn isl_val_get_num_si(value: *mut isl_val) -> c_long;
    pub fn isl_val_get_den_si(value: *mut isl_val) -> c_long;

    pub fn isl_basic_set_from_constraint_matrices(
        space: *mut isl_space,
        eq: *mut isl_mat,
        ineq: *mut isl_mat,
        c1: DimType,
        c2: DimType,
        c3: DimType,
        c4: DimType,
    ) -> *mut isl_basic_set;
    pub fn isl_basic_map_from_constraint_matrices(
        space: *mut isl_space,
        eq: *mut isl_mat,
        ineq: *mut isl_mat,
        c1: DimType,
        c2: DimType,
        c3: DimType,
        c4: DimType,
        c5: DimType,
    ) -> *mut isl_basic_map;
    pub fn isl_basic_set_equalities_matrix(
        set: *mut isl_basic_set,
        c1: DimType,
        c2: DimType,
        c3: DimType,
        c4: DimType,
    ) -> *mut isl_mat;
    pub fn isl_basic_set_inequalities_matrix(
        set: *mut isl_basic_set,
        c1: DimType,
        c2: DimType,
        c3: DimType,
        c4: DimType,
    ) -> *mut isl_mat;
    pub fn isl_basic_set_dim(set: *mut isl_basic_set, kind: DimType) -> c_int;
    pub fn isl_basic_set_get_div(set: *mut isl_basic_set, pos: c_int) -> *mut isl_aff;
    pub fn isl_basic_set_list_get_at(list: *mut isl_basic_set_list, index: c_int) -> *mut isl_basic_set;
    pub fn isl_set_list_get_at(list: *mut isl_set_list, index: c_int) -> *mut isl_set;
    pub fn isl_schedule_node_get_child(
        node: *mut isl_schedule_node,
        position: c_int,
    ) -> *mut isl_schedule_node;
    pub fn isl_schedule_node_band_member_get_coincident(node: *mut isl_schedule_node, member: c_int)
    -> c_int;
    pub fn isl_options_set_schedule_outer_coincidence(ctx: *mut isl_ctx, value: c_int) -> c_int;
    pub fn isl_options_set_schedule_serialize_sccs(ctx: *mut isl_ctx, value: c_int) -> c_int;
    pub fn isl_map_list_get_at(list: *mut isl_map_list, index: c_int) -> *mut isl_map;

    pub fn isl_set_dim(set: *mut isl_set, kind: DimType) -> c_int;
    pub fn isl_map_dim(map: *mut isl_map, kind: DimType) -> c_int;
    pub fn isl_set_has_dim_id(set: *mut isl_set, kind: DimType, pos: c_uint) -> c_int;
    pub fn isl_map_has_dim_id(map: *mut isl_map, kind: DimType, pos: c_uint) -> c_int;
    pub fn isl_set_get_dim_id(set: *mut isl_set, kind: DimType, pos: c_uint) -> *mut isl_id;
    pub fn isl_map_get_dim_id(map: *mut isl_map, kind: DimType, pos: c_uint) -> *mut isl_id;
    pub fn isl_set_set_dim_id(set: *mut isl_set, kind: DimType, pos: c_uint, id: *mut isl_id)
    -> *mut isl_set;
    pub fn isl_map_set_dim_id(map: *mut isl_map, kind: DimType, pos: c_uint, id: *mut isl_id)
    -> *mut isl_map;
    pub fn isl_set_add_dims(set: *mut isl_set, kind: DimType, n: c_uint) -> *mut isl_set;
    pub fn isl_map_add_dims(map: *mut isl_map, kind: DimType, n: c_uint) -> *mut isl_map;
    pub fn isl_set_move_dims(
        set: *mut isl_set,
        to: DimType,
        to_pos: c_uint,
        from: DimType,
        from_pos: c_uint,
        n: c_uint,
    ) -> *mut isl_set;
    pub fn isl_map_equate(
        map: *mut isl_map,
        kind1: DimType,
        pos1: c_int,
        kind2: DimType,
        pos2: c_int,
    ) -> *mut isl_map;
    pub fn isl_set_fix_val(
        set: *mut isl_set,
        kind: DimType,
        pos: c_uint,
        value: *mut isl_val,
    ) -> *mut isl_set;
    pub fn isl_map_fix_val(
        map: *mut isl_map,
        kind: DimType,
        pos: c_uint,
        value: *mut isl_val,
    ) -> *mut isl_map;
    pub fn isl_set_has_tuple_id(set: *mut isl_set) -> c_int;
    pub fn isl_map_has_tuple_id(map: *mut isl_map, kind: DimType) -> c_int;
    pub fn isl_set_get_tuple_id(set: *mut isl_set) -> *mut isl_id;
    pub fn isl_map_get_tuple_id(map: *mut isl_map, kind: DimType) -> *mut isl_id;
    pub fn isl_set_set_tuple_id(set: *mut isl_set, id: *mut isl_id) -> *mut isl_set;
    pub fn isl_map_set_tuple_id(map: *mut isl_map, kind: DimType, id: *mut isl_id) -> *mut isl_map;
    pub fn isl_set_reset_tuple_id(set: *mut isl_set) -> *mut isl_set;
    pub fn isl_map_reset_tuple_id(map: *mut isl_map, kind: DimType) -> *mut isl_map;
    pub fn isl_set_to_str(set: *mut isl_set) -> *mut c_char;
    pub fn isl_map_to_str(map: *mut isl_map) -> *mut c_char;
    pub fn isl_set_read_from_str(ctx: *mut isl_ctx, text: *const c_char) -> *mut isl_set;
    pub fn isl_map_read_from_str(ctx: *mut isl_ctx, text: *const c_char) -> *mut isl_map;
    pub fn isl_set_dim_min_val(set: *mut isl_set, pos: c_int) -> *mut isl_val;
    pub fn isl_set_dim_max_val(set: *mut isl_set, pos: c_int) -> *mut isl_val;
    pub fn isl_set_foreach_point(set: *mut isl_set, f: PointCallback, user: *mut c_void) -> c_int;
    pub fn isl_point_get_coordinate_val(point: *mut isl_point, kind: DimType, pos: c_int) -> *mut isl_val;

    pub fn isl_aff_dim(aff: *mut isl_aff, kind: DimType) -> c_int;
    pub fn isl_aff_get_coefficient_val(aff: *mut isl_aff, kind: DimType, pos: c_int) -> *mut isl_val;
    pub fn isl_aff_get_div(aff: *mut isl_aff, pos: c_int) -> *mut isl_aff;

    pub fn isl_map_lex_lt(space: *mut isl_space) -> *mut isl_map;
}

#[cfg(test)]
mod tests {
    use super::c_char;
    use std::ffi::CStr;

    /// Without them isl allocates for each number, and proofs take 1.7 to 3.6 times as long.
    #[test]
    fn isl_has_its_small_integers() {
        unsafe extern "C" {
            fn isl_version() -> *const c_char;
        }
        // SAFETY: isl gives a static string, which ends with its arithmetic.
        let version = unsafe { CStr::from_ptr(isl_version()) };
        assert!(version.to_string_lossy().trim_end().ends_with("-IMath-32"), "{version:?}");
    }
}
