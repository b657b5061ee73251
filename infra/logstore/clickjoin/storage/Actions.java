package clickjoin.storage;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

/** What a line of a commit says. */
final class Actions {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Actions() {}

    /** The file that an add or cdc action names, decoded. */
    static String pathOf(String action) throws IOException {
        JsonNode fields = (JsonNode) JSON.readTree(action).elements().next();
        String path = fields.get("path").asText();
        try {
            URI uri = new URI(path);
            return uri.getPath();
        } catch (URISyntaxException error) {
            throw new IOException(path + ": not a path that Delta writes", error);
        }
    }
}
