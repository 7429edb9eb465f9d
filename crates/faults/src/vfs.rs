//! The shim around SQLite's own layer for files. It asks the disk before each call and passes the call on.
//!
//! All of it is unsafe because SQLite calls it. It relies on this: SQLite hands every call a file that [`open`] made,
//! and stops after [`close`]; the names it hands over are C strings, and live as long as the file.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use crate::volume::{FileKind, Refusal, Volume, disk_of};

/// A file of the shim, as SQLite allocates it: the real one follows it in memory.
#[repr(C)]
struct Shim {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

struct Handle {
    /// None if the file is on no [`Disk`](crate::Disk).
    disk: Option<Arc<Volume>>,
    path: PathBuf,
    kind: FileKind,
}

/// The real layer and the shim's.
struct Layers {
    real: *mut ffi::sqlite3_vfs,
    ours: ffi::sqlite3_vfs,
}

// SAFETY: both are written once, before any thread can read them, and SQLite itself shares them between threads.
unsafe impl Send for Layers {}
// SAFETY: as above.
unsafe impl Sync for Layers {}

static LAYERS: OnceLock<Box<Layers>> = OnceLock::new();

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // The second version has shared memory, which a log needs; the third would map files past this shim.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Installs the shim, once.
pub(crate) fn install() {
    LAYERS.get_or_init(|| {
        // SAFETY: SQLite always has a layer for files, whose struct may be copied; the copy lives for ever.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!real.is_null(), "SQLite has no layer for files");
            let mut ours = std::ptr::read(real);
            ours.szOsFile += size_of::<Shim>() as c_int;
            ours.zName = c"dacapo-faults".as_ptr();
            ours.pNext = std::ptr::null_mut();
            ours.xOpen = Some(open);
            ours.xDelete = Some(delete);
            Box::new(Layers { real, ours })
        }
    });
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        let ours = &raw const LAYERS.get().expect("it was just made").ours;
        // SAFETY: the struct lives for ever, and SQLite changes nothing in it but the link to the next.
        let registered = unsafe { ffi::sqlite3_vfs_register(ours.cast_mut(), 1) };
        assert_eq!(registered, ffi::SQLITE_OK, "SQLite takes no layer for files");
    });
}

fn real_layer() -> *mut ffi::sqlite3_vfs {
    LAYERS.get().expect("SQLite can only call what was installed").real
}

/// SAFETY: `file` was made by `open`.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite allocated `szOsFile` bytes, which are those of the shim and of the real file.
    unsafe { file.cast::<u8>().add(size_of::<Shim>()).cast() }
}

/// SAFETY: `file` was made by `open` and is not closed.
unsafe fn handle<'a>(file: *mut ffi::sqlite3_file) -> &'a Handle {
    // SAFETY: `open` put it there, and it lives until `close`.
    unsafe { &*(*file.cast::<Shim>()).handle }
}

fn path_of(name: *const c_char) -> PathBuf {
    if name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: a name is a C string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Asks the disk, and returns SQLite's error code if it refuses.
fn ask(handle: &Handle, broken: c_int, ask: impl FnOnce(&Volume, &Path) -> Result<(), Refusal>) -> Result<(), c_int> {
    let Some(disk) = &handle.disk else { return Ok(()) };
    ask(disk, &handle.path).map_err(|refusal| match refusal {
        Refusal::Full => ffi::SQLITE_FULL,
        Refusal::Broken => broken,
    })
}

/// Calls a method of the real file.
macro_rules! pass_on {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        // SAFETY: the real file is open, so it has methods, and these are its own arguments.
        unsafe {
            let real = real($file);
            ((*(*real).pMethods).$method.expect("SQLite's own layer has all methods"))(real $(, $argument)*)
        }
    }};
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let path = path_of(name);
    let disk = disk_of(&path);
    let existed = path.exists();
    // SAFETY: SQLite hands over a file to be filled, with room for both.
    unsafe {
        (*file).pMethods = std::ptr::null();
        if disk.as_ref().is_some_and(|disk| !disk.has_power()) {
            return ffi::SQLITE_CANTOPEN;
        }
        let real_layer = real_layer();
        let opened = ((*real_layer).xOpen.expect("it opens files"))(real_layer, name, real(file), flags, out);
        if (*real(file)).pMethods.is_null() {
            return opened;
        }
        let kind = match flags {
            flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => FileKind::Main,
            flags if flags & ffi::SQLITE_OPEN_WAL != 0 => FileKind::Log,
            _ => FileKind::Other,
        };
        if let (Some(disk), true) = (&disk, opened == ffi::SQLITE_OK) {
            disk.opened(&path, existed);
        }
        (*file.cast::<Shim>()).handle = Box::into_raw(Box::new(Handle { disk, path, kind }));
        (*file).pMethods = &raw const METHODS;
        opened
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, flushes_folder: c_int) -> c_int {
    let path = path_of(name);
    if let Some(disk) = disk_of(&path)
        && path.exists()
        && disk.delete(&path, flushes_folder != 0).is_err()
    {
        return ffi::SQLITE_IOERR_DELETE;
    }
    let real_layer = real_layer();
    // SAFETY: passed on as it came.
    unsafe { ((*real_layer).xDelete.expect("it deletes files"))(real_layer, name, flushes_folder) }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let closed = pass_on!(file, xClose);
    // SAFETY: `open` put it there, and SQLite calls nothing after this.
    drop(unsafe { Box::from_raw((*file.cast::<Shim>()).handle) });
    closed
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    if handle.disk.as_ref().is_some_and(|disk| !disk.has_power()) {
        return ffi::SQLITE_IOERR_READ;
    }
    pass_on!(file, xRead, to, amount, at)
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: an open file, and this many bytes from there on.
    let (handle, bytes) =
        unsafe { (handle(file), std::slice::from_raw_parts(from.cast::<u8>(), amount.max(0) as usize)) };
    let mut written = amount;
    let told = ask(handle, ffi::SQLITE_IOERR_WRITE, |disk, path| {
        disk.write(path, at as usize, bytes).map_err(|(done, refusal)| {
            written = done as c_int;
            refusal
        })
    });
    let passed = pass_on!(file, xWrite, from, written, at);
    told.map_or_else(|told| told, |()| passed)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    match ask(handle, ffi::SQLITE_IOERR_TRUNCATE, |disk, path| disk.truncate(path, size as usize)) {
        Ok(()) => pass_on!(file, xTruncate, size),
        Err(told) => told,
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    match ask(handle, ffi::SQLITE_IOERR_FSYNC, |disk, path| disk.flush(path, handle.kind)) {
        // The disk decides what is durable, so the real file need not be flushed.
        Ok(()) if handle.disk.is_some() => ffi::SQLITE_OK,
        Ok(()) => pass_on!(file, xSync, flags),
        Err(told) => told,
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    pass_on!(file, xFileSize, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    pass_on!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    pass_on!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    pass_on!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    pass_on!(file, xFileControl, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    pass_on!(file, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    pass_on!(file, xDeviceCharacteristics)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    pass_on!(file, xShmMap, page, size, extend, out)
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    pass_on!(file, xShmLock, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    pass_on!(file, xShmBarrier)
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, deletes: c_int) -> c_int {
    pass_on!(file, xShmUnmap, deletes)
}
