package clickjoin.storage;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * A Delta log store that creates a commit exclusively and whole, or not at all, whoever else commits: this JVM, another
 * one, or delta-rs. A store of files supplies the primitives below.
 *
 * A commit is recognised by its bytes: Delta writes a random transaction id into each one's commitInfo.
 */
public abstract class ExclusiveLogStore extends HadoopFileSystemLogStore {
    private static final String ADD = "{\"add\":";
    private static final String CDC = "{\"cdc\":";

    public ExclusiveLogStore(Configuration conf) {
        super(conf);
    }

    /** Create a file with these bytes, durably; false if a file of that name is there already. */
    protected abstract boolean createExclusively(Path path, byte[] bytes) throws IOException;

    /** Make a file durable whose creation was answered by an error. */
    protected abstract void confirm(Path path) throws IOException;

    /** Put these bytes in the place of a file in one step, durably. */
    protected abstract void replace(Path path, byte[] bytes) throws IOException;

    /** The bytes of a file; null if it is not there. */
    protected abstract byte[] bytesOf(Path path) throws IOException;

    /** Make data files durable that a commit is about to add; paths as in the log, relative to the table's root. */
    protected abstract void makeDurable(Path table, List<String> files) throws IOException;

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
        List<String> files = new ArrayList<String>();
        byte[] bytes = collect(actions, files);
        if (!isCommit(path)) {  // a checkpoint's pointer, or a checksum of a version
            put(path, bytes, overwrite.booleanValue());
            return;
        }
        if (overwrite.booleanValue()) {
            throw new IOException(path + ": a commit is never overwritten");
        }
        makeDurable(path.getParent().getParent(), files);
        commit(path, bytes);
    }

    private void put(Path path, byte[] bytes, boolean overwrite) throws IOException {
        if (overwrite) {
            replace(path, bytes);
        } else if (!createExclusively(path, bytes)) {
            throw new FileAlreadyExistsException(path.toString());
        }
    }

    private void commit(Path path, byte[] bytes) throws IOException {
        IOException failure = null;
        try {
            if (createExclusively(path, bytes)) {
                return;
            }
        } catch (IOException error) {
            failure = error;
        }
        settle(path, bytes, failure);
    }

    /** Find out what became of a commit that was refused, or failed: its answer can be lost on the way back. */
    private void settle(Path path, byte[] bytes, IOException failure) throws IOException {
        byte[] found = null;
        try {
            found = bytesOf(path);
            if (Arrays.equals(found, bytes)) {  // it landed after all
                confirm(path);
                return;
            }
        } catch (IOException error) {
            throw new CommitStateUnknownException(path.toString(), failure == null ? error : failure);
        }
        if (found != null) {
            throw new FileAlreadyExistsException(path.toString());
        }
        if (failure == null) {  // refused, and yet nothing is there
            throw new CommitStateUnknownException(path.toString(), new FileAlreadyExistsException(path.toString()));
        }
        throw failure;
    }

    private static byte[] collect(Iterator<String> actions, List<String> files) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            String action = (String) actions.next();
            if (action.startsWith(ADD) || action.startsWith(CDC)) {
                files.add(Actions.pathOf(action));
            }
            out.write(action.getBytes(StandardCharsets.UTF_8));
            out.write('\n');
        }
        return out.toByteArray();
    }

    private static boolean isCommit(Path path) {
        String name = path.getName();
        return name.endsWith(".json") && Character.isDigit(name.charAt(0));
    }
}
